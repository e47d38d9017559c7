"""The seeds' rivals, with our inputs and our head for numbers: VAE and MIWAE."""

import numpy as np
import torch

from anyorder.baselines import MIWAE, VAE, LatentModel, fit_baseline, log_prob, mean, sample
from anyorder.inference import seeded
from anyorder.modalities.tables.columns import NumberColumn
from anyorder.modalities.tables.encoder import TableEncoder
from anyorder.modalities.tables.table_model import table_heads
from anyorder.subsets import Question

from .exchange import Cells, Fitted, Task, serve
from .ours import cells, frame

DRAWS = 200  # of z, for every answer


def fit_latent(kind: type[LatentModel], task: Task) -> Fitted:
    torch.set_num_threads(1)
    encoder = TableEncoder.learn(frame(task.train, task))
    x, present = encoder.encode(frame(task.train, task))
    model = kind.build(encoder.schema, table_heads(encoder.schema), seed=task.seed)
    fit_baseline(model, x, present)

    def impute(test: Cells) -> Cells:
        table = frame(test, task)
        x, known = encoder.encode(table)
        rng = seeded(task.seed)
        draws = [sample(model, x, Question(known, ~known), rng, DRAWS) for _ in range(task.draws)]
        return np.stack([cells(encoder.fill(table, one, ~known), task) for one in draws])

    def more(test: Cells) -> dict[str, Cells]:
        x, present = encoder.encode(frame(task.truth, task))
        shown = torch.tensor(np.isfinite(test))
        known, hidden = present & shown, present & ~shown
        nats = -log_prob(model, x, Question(known, hidden), seeded(task.seed), 1000)
        found = {"nats": nats.double().numpy()}
        if not task.categories:  # the mean of a code is no guess
            best = mean(model, x, Question(known, ~known), seeded(task.seed), DRAWS).double().numpy()
            numbers = [column for column in encoder.columns if isinstance(column, NumberColumn)]
            found["mean"] = np.stack([column.number(v) for column, v in zip(numbers, best.T, strict=True)], axis=1)
        return found

    return Fitted(impute, more)


if __name__ == "__main__":
    serve({"vae": lambda task: fit_latent(VAE, task), "miwae": lambda task: fit_latent(MIWAE, task)})
