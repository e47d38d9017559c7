"""One rank of a small training run, for test_distributed: writes what it ended with into rankN.json."""

import json
import sys
import time
from pathlib import Path

import torch

from anyorder.errors import TrainingError
from anyorder.models.any_order import build_model
from anyorder.schema import Category, Schema, Variable
from anyorder.training import Recipe, edge_loss, fit
from anyorder.training.distributed import joined
from anyorder.training.loop import Rows, Run, split

SCHEMA = Schema(tuple(Variable(name, Category(3)) for name in "abcd"))
torch.set_num_threads(1)


def data():
    rng = torch.Generator().manual_seed(0)
    first = torch.randint(0, 3, (120, 1), generator=rng)
    return ((first + torch.randint(0, 2, (120, 4), generator=rng)) % 3).float()


def first_gradients(world):
    """How far the averaged gradient is from that of both batches together, worked out by one process."""
    x, recipe = data(), Recipe(steps=4, batch_size=16, check_every=2)
    present = torch.ones_like(x, dtype=torch.bool)
    train, held = (Rows(x, present, None)[rows] for rows in split(present, recipe))
    run = Run(build_model(SCHEMA, seed=0), train, held, recipe, 0.0, world=world)
    rows, edges = run.next_batch()
    gathered = [None] * world.size
    torch.distributed.all_gather_object(gathered, (rows, edges))
    model, parts = build_model(SCHEMA, seed=0), []
    for other, about in gathered:
        parts.append(edge_loss(model, train.x[other], about).mean() / x.shape[1])
    (sum(parts) / len(parts)).backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    (edge_loss(run.model, train.x[rows], edges).mean() / x.shape[1]).backward()
    found = [p.grad for p in run.model.parameters()]
    world.average(found)
    scores = [None] * world.size
    torch.distributed.all_gather_object(scores, run.score())
    error = max(float((a - b).abs().max()) for a, b in zip(wanted, found, strict=True))
    return error, abs(scores[0] - scores[1]), gathered[0][0].tolist() == gathered[1][0].tolist()


def main():
    folder, more = Path(sys.argv[1]), sys.argv[2:]
    with joined(folder / "model.run") as world:
        error, score_error, same = first_gradients(world)
        x = data()
        recipe = Recipe(steps=60 if "long" in more else 10, batch_size=16, check_every=5)
        started = []

        def watch(check):
            started.append(check.step)
            if "slow" in more:
                time.sleep(0.5)

        fitted = fit(build_model(SCHEMA, seed=0), x, None, recipe, progress=watch, checkpoint=world.checkpoint, world=world)
        document = {
            "gradient_error": error,
            "score_error": score_error,
            "same_batches": same,
            "weights": [p.flatten().tolist() for p in fitted.model.parameters()],
            "history": [list(check) for check in fitted.history],
            "started_at": min(started, default=0) - recipe.check_every,
        }
        (folder / f"rank{world.rank}.json").write_text(json.dumps(document))


if __name__ == "__main__":
    try:
        main()
    except TrainingError as error:
        print(f"TrainingError: {error}", flush=True)
        sys.exit(1)
