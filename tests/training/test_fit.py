"""The training loop: it learns what there is to learn, stops when it should, and survives being stopped."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from anyorder.errors import InputError, TrainingError
from anyorder.inference import log_prob, sample, seeded
from anyorder.models.any_order import build_model
from anyorder.schema import Category, Real, Schema
from anyorder.subsets import Observed, Question, RandomOrder
from anyorder.training import Recipe, ace, ardm, edge_loss, fit, mac, progress_bar, sfarm
from anyorder.training.loop import join_context
from exact import JointTable

SCHEMA = Schema.of(a=Category(2), b=Category(3), c=Category(2))


def joint_rows(rows, seed=0):
    joint = JointTable.random(2, 3, 2, seed=3)
    question = Question.joint(torch.ones(rows, 3, dtype=torch.bool))
    return joint, sample(joint, torch.zeros(rows, 3, dtype=torch.float64), question, seeded(seed)).float()


def test_training_finds_the_joint_it_was_shown_even_through_gaps():
    """Held-out nats reach the joint's entropy, although a quarter of the training cells are missing."""
    joint, x = joint_rows(4000)
    present = torch.rand(x.shape, generator=seeded()) < 0.75
    model = build_model(SCHEMA, width=32, depth=1)
    fitted = fit(model, torch.where(present, x, torch.nan), recipe=Recipe(steps=600, batch_size=128, check_every=50))
    states = joint.states()
    everything = Question.joint(torch.ones(len(states), 3, dtype=torch.bool))
    p = joint.probs.flatten()
    divergence = (p * (p.log() - log_prob(model, states.float(), everything))).sum().item()
    assert fitted.stopped == "finished"
    assert 0 <= divergence < 0.02
    assert fitted.best_nats < fitted.history[0].held_out_nats


def test_gaps_are_never_looked_at():
    """Whatever stands in a gap, the weights come out the same."""
    _, x = joint_rows(60)
    present = torch.rand(x.shape, generator=seeded()) < 0.6
    recipe = Recipe(steps=5, batch_size=16, check_every=5)
    weights = []
    for garbage in (torch.nan, 1e30):
        model = build_model(SCHEMA, width=8, depth=1)
        fit(model, torch.where(present, x, garbage), present, recipe)
        weights.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    _, x = joint_rows(100)
    runs = []
    for seed in (0, 0, 1):
        model = build_model(SCHEMA, width=8, depth=1)
        fit(model, x, recipe=Recipe(steps=8, batch_size=16, check_every=4, seed=seed))
        runs.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_global_random_numbers_are_left_alone():
    _, x = joint_rows(50)
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    fit(build_model(SCHEMA, width=8, depth=1), x, recipe=Recipe(steps=3, batch_size=16))
    assert torch.equal(before, torch.random.get_rng_state())


def test_training_stops_when_held_out_nats_no_longer_fall_and_keeps_the_best():
    x = torch.randn(40, 3, generator=seeded())
    model = build_model(Schema.of(a=Real(), b=Real(), c=Real()), width=64, depth=2)
    fitted = fit(model, x, recipe=Recipe(steps=3000, batch_size=32, check_every=10, patience=5, average=0.9))
    scores = [check.held_out_nats for check in fitted.history]
    assert fitted.stopped == "early"
    assert len(scores) - 1 - scores.index(min(scores)) == 5
    assert fitted.best_nats == min(scores)
    assert [check.best_nats for check in fitted.history] == [min(scores[: i + 1]) for i in range(len(scores))]


def test_ctrl_c_keeps_the_best_model_so_far():
    _, x = joint_rows(200)
    kept = {}

    def interrupt_at_the_third(check):
        kept[check.step] = check.held_out_nats
        if len(kept) == 3:
            raise KeyboardInterrupt

    model = build_model(SCHEMA, width=16, depth=1)
    fitted = fit(model, x, recipe=Recipe(steps=500, batch_size=32, check_every=20), progress=interrupt_at_the_third)
    assert fitted.stopped == "interrupted"
    assert [check.step for check in fitted.history] == [20, 40, 60]
    whole = build_model(SCHEMA, width=16, depth=1)
    fit(whole, x, recipe=Recipe(steps=500, batch_size=32, check_every=20, patience=99), progress=Stopper(60, kept))
    for a, b in zip(model.parameters(), whole.parameters(), strict=True):
        assert torch.equal(a, b)


class Stopper:
    """Raises Ctrl-C at a step."""

    def __init__(self, step, expected):
        self.step, self.expected = step, expected

    def __call__(self, check):
        assert self.expected[check.step] == check.held_out_nats
        if check.step == self.step:
            raise KeyboardInterrupt


RUN = """
import sys, time, torch
from anyorder import Category, Recipe, Schema, build_model, fit, save_model
torch.set_num_threads(1)
folder, pause = sys.argv[1], float(sys.argv[2])
x = (torch.arange(600).view(200, 3) * 7919 % 31 % torch.tensor([2, 3, 2])).float()
model = build_model(Schema.of(a=Category(2), b=Category(3), c=Category(2)), width=16, depth=1)
recipe = Recipe(steps=120, batch_size=16, check_every=10, patience=99)
def slow(check):
    print(check.step, flush=True)
    time.sleep(pause)
fitted = fit(model, x, recipe=recipe, checkpoint=folder + "/run.ckpt", progress=slow)
save_model(model, folder + "/model.ao")
print("done", len(fitted.history), flush=True)
"""


@pytest.mark.slow
def test_a_run_killed_twice_resumes_to_the_same_weights(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-c", RUN]
    subprocess.run([*command, str(whole), "0"], check=True, env=environment, stdout=subprocess.DEVNULL)
    for kill_after in ("30", "70"):
        process = subprocess.Popen([*command, str(broken), "0.3"], env=environment, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.strip() == kill_after:
                time.sleep(0.05)
                process.send_signal(signal.SIGKILL)
                break
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        assert not (broken / "model.ao").exists()
    last = subprocess.run([*command, str(broken), "0"], check=True, env=environment, capture_output=True, text=True)
    assert last.stdout.split()[0] == "80"  # it went on where it was, not from the start
    assert last.stdout.splitlines()[-1] == "done 12"
    assert (whole / "model.ao").read_bytes() == (broken / "model.ao").read_bytes()


def test_a_finished_run_is_not_trained_again(tmp_path):
    _, x = joint_rows(60)
    recipe = Recipe(steps=6, batch_size=16, check_every=3)
    first = fit(build_model(SCHEMA, width=8, depth=1), x, recipe=recipe, checkpoint=tmp_path / "run")
    steps = []
    again = fit(build_model(SCHEMA, width=8, depth=1), x, recipe=recipe, checkpoint=tmp_path / "run", progress=steps.append)
    assert steps == []
    for a, b in zip(first.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_checkpoint_of_other_data_recipe_or_model_is_refused(tmp_path):
    _, x = joint_rows(60)
    recipe = Recipe(steps=6, batch_size=16, check_every=3)
    fit(build_model(SCHEMA, width=8, depth=1), x, recipe=recipe, checkpoint=tmp_path / "run")
    with pytest.raises(InputError, match="belongs to another run: its data or recipe differ"):
        fit(build_model(SCHEMA, width=8, depth=1), x.flip(0), recipe=recipe, checkpoint=tmp_path / "run")
    with pytest.raises(InputError, match="belongs to another run"):
        fit(build_model(SCHEMA, width=8, depth=1), x, recipe=Recipe(steps=7), checkpoint=tmp_path / "run")
    with pytest.raises(InputError, match="is a run of another model"):
        fit(build_model(SCHEMA, width=9, depth=1), x, recipe=recipe, checkpoint=tmp_path / "run")


def test_modes_and_labels_are_told_to_the_network():
    _, x = joint_rows(100)
    label = x[:, :1].long()
    model = build_model(SCHEMA, width=16, depth=1, context=(2, 4, 2))
    fit(model, x, recipe=Recipe(objective=sfarm([RandomOrder(), RandomOrder()]), steps=4, batch_size=16), context=label)
    assert join_context(None, None) is None
    assert join_context(torch.zeros(2, 2).long(), torch.ones(2, 1).long()).tolist() == [[0, 0, 1], [0, 0, 1]]
    with torch.no_grad():
        given = torch.zeros(1, 3, dtype=torch.bool)
        one, other = (model(x[:1], given, torch.tensor([[0, 0, k]])).parts[0].params for k in (0, 1))
    assert not torch.equal(one, other)


@pytest.mark.parametrize("objective", [ace(), mac()], ids=["ace", "mac"])
def test_held_out_nats_are_nats_whatever_the_training_weights(objective):
    """An untrained network scores near the uniform objective: log 12 for the joint, less for its marginals."""
    _, x = joint_rows(500)
    model = build_model(SCHEMA, width=8, depth=1)
    fitted = fit(model, x, recipe=Recipe(objective=objective, steps=1, learning_rate=1e-9, batch_size=16))
    assert 0.5 < fitted.best_nats < 3.2


def test_few_rows_and_empty_rows_are_enough():
    x = torch.tensor([[0.0, 1.0, 1.0], [torch.nan] * 3, [1.0, torch.nan, 0.0]])
    fitted = fit(build_model(SCHEMA, width=8, depth=1), x, recipe=Recipe(steps=2))
    assert fitted.best_nats == fitted.best_nats


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: fit(build_model(SCHEMA), torch.full((5, 3), torch.nan)), "nothing to learn from: none of the 15 cells"),
        (lambda: fit(build_model(SCHEMA), torch.zeros(5, 4)), r"x has shape \(5, 4\); expected .* 3 variables"),
        (lambda: fit(build_model(SCHEMA), torch.full((5, 3), 2.0)), r"of variable 'a' \(Category\(levels=2\)\) is no code"),
        (
            lambda: fit(build_model(SCHEMA, context=(2,)), torch.zeros(5, 3), context=torch.zeros(4, 1, dtype=torch.long)),
            "`context` has 4 rows, x has 5",
        ),
        (lambda: Recipe(steps=0), "steps=0; expected a positive number"),
        (lambda: Recipe(held_out=1.0), "expected fractions below 1"),
    ],
)
def test_bad_input_is_explained_before_any_work(act, message):
    with pytest.raises(InputError, match=message):
        act()


def test_a_diverging_run_says_so():
    x = torch.randn(50, 2, generator=seeded())
    x[:, 0] = 3e38
    with pytest.raises(TrainingError, match=r"The loss became .* at step 0. Lower the learning rate"):
        fit(build_model(Schema.of(a=Real(), b=Real()), width=8, depth=1), x, recipe=Recipe(steps=3))


def test_the_progress_bar_shows_nats(capsys):
    _, x = joint_rows(60)
    with progress_bar("learning") as progress:
        fit(build_model(SCHEMA, width=8, depth=1), x, recipe=Recipe(steps=4, batch_size=16, check_every=2), progress=progress)
    shown = capsys.readouterr().err
    assert "learning" in shown
    assert "held-out" in shown
    assert "4/4 steps" in shown


def weights_of(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_an_early_stopped_run_is_not_trained_again(tmp_path):
    x = torch.randn(40, 3, generator=seeded())
    recipe = Recipe(steps=3000, batch_size=32, check_every=10, patience=2, average=0.9)
    make = lambda: build_model(Schema.of(a=Real(), b=Real(), c=Real()), width=64, depth=2)  # noqa: E731
    first = fit(make(), x, recipe=recipe, checkpoint=tmp_path / "run")
    again = fit(make(), x, recipe=recipe, checkpoint=tmp_path / "run")
    assert first.stopped == again.stopped == "early"
    assert first.history == again.history
    assert torch.equal(weights_of(first.model), weights_of(again.model))


def test_a_model_that_never_hears_its_context_can_be_checkpointed(tmp_path):
    _, x = joint_rows(60)
    recipe = Recipe(steps=6, batch_size=16, check_every=3)
    model = build_model(SCHEMA, width=8, depth=1, context=(3,))
    fit(model, x, recipe=recipe, checkpoint=tmp_path / "run")
    again = fit(build_model(SCHEMA, width=8, depth=1, context=(3,)), x, recipe=recipe, checkpoint=tmp_path / "run")
    assert torch.equal(weights_of(model), weights_of(again.model))


def test_a_checkpoint_knows_labels_first_weights_and_patterns(tmp_path):
    _, x = joint_rows(60)

    def run(label=0, seed=0, patterns=None):
        objective = ardm(Observed(torch.zeros(2, 3, dtype=torch.bool) if patterns is None else patterns))
        model = build_model(SCHEMA, width=8, depth=1, context=(3,), seed=seed)
        context = torch.full((60, 1), label)
        fit(model, x, recipe=Recipe(objective=objective, steps=4, batch_size=16), context=context, checkpoint=tmp_path / "run")

    run()
    for other in ({"label": 1}, {"seed": 1}, {"patterns": torch.eye(3, dtype=torch.bool)[:2]}):
        with pytest.raises(InputError, match="belongs to another run"):
            run(**other)


def test_ctrl_c_before_the_first_check_keeps_what_was_learned(monkeypatch):
    _, x = joint_rows(60)
    model = build_model(SCHEMA, width=8, depth=1)
    before = weights_of(model).clone()
    module, count = sys.modules["anyorder.training.loop"], iter(range(100))
    true_loss = module.edge_loss

    def interrupted(*args):
        if next(count) == 5:
            raise KeyboardInterrupt
        return true_loss(*args)

    monkeypatch.setattr(module, "edge_loss", interrupted)
    fitted = fit(model, x, recipe=Recipe(steps=50, batch_size=16))
    assert fitted.stopped == "interrupted"
    assert fitted.history == []
    assert not torch.equal(weights_of(model), before)
    assert not model.training


def test_the_parts_of_a_run(monkeypatch):
    """The slow, obvious twin: which rows are trained on, the average of the weights, the learning rate, what is scored."""
    module = sys.modules["anyorder.training.loop"]
    x = torch.arange(40.0)[:, None].repeat(1, 2) / 40
    label = torch.arange(40)[:, None]
    rows = module.Rows(x, torch.ones(40, 2, dtype=torch.bool), label)
    recipe = Recipe(steps=20, batch_size=12, learning_rate=0.01, average=0.7)
    train, held_out = (rows[some] for some in module.split(rows.present, recipe))
    assert sorted([*train.context.flatten().tolist(), *held_out.context.flatten().tolist()]) == list(range(40))
    assert len(held_out) == 4
    model = build_model(Schema.of(a=Real(), b=Real()), width=8, depth=1, context=(40,))
    run = module.Run(model, train, held_out, recipe, started=0.0)
    seen, mean = [], [p.detach().clone() for p in model.parameters()]
    true_loss = module.edge_loss
    monkeypatch.setattr(module, "edge_loss", lambda m, b, e, c: seen.append((b[:, 0], c)) or true_loss(m, b, e, c))
    for step in range(20):
        run.one_step()
        decay = min(0.7, (1 + step) / (10 + step))
        mean = [decay * m + (1 - decay) * p.detach() for m, p in zip(mean, model.parameters(), strict=True)]
        assert run.descent.adam.param_groups[0]["lr"] == pytest.approx(0.01 * min(1, 2 * (1 - step / 20)))
        for expected, found in zip(mean, run.averaged.parameters(), strict=True):
            torch.testing.assert_close(found, expected)
    assert [g["weight_decay"] for g in run.descent.adam.param_groups] == [recipe.weight_decay, 0.0]
    for values, labels in seen:  # labels stay with their rows, and no held-out row is trained on
        torch.testing.assert_close(values, labels.flatten() / 40)
        assert not set(labels.flatten().tolist()) & set(held_out.context.flatten().tolist())
    assert sorted(torch.cat([c for _, c in seen[:3]]).flatten().tolist()) == sorted(train.context.flatten().tolist())  # an epoch
    scored = []
    monkeypatch.setattr(module, "held_out_nats", lambda m, xs, *rest: scored.append((m, xs)) or 0.0)
    run.score()
    assert scored[0][0] is run.averaged
    assert torch.equal(scored[0][1], held_out.x)


def test_edges_drawn_for_many_steps_are_spread_over_every_batch():
    module = sys.modules["anyorder.training.loop"]
    present = torch.rand(100, 12, generator=seeded()) < 0.9
    rows = module.Rows(present.float(), present, None)
    recipe = Recipe(batch_size=24)
    run = module.Run(build_model(Schema.repeat(Real(), 12), width=4, depth=0), rows, rows, recipe, started=0.0)
    for step in range(400):
        run.step = step
        chosen, edges = run.next_batch()
        assert not (edges.given & ~present[chosen]).any()  # every mask is made for its own row
        depth = edges.given.sum(-1) / present[chosen].sum(-1)
        assert 0.3 < depth.mean() < 0.62
    again = module.Run(build_model(Schema.repeat(Real(), 12), width=4, depth=0), rows, rows, recipe, started=0.0)
    again.step = step  # taken up in the middle of a draw
    other, same = again.next_batch()
    assert torch.equal(other, chosen)
    assert torch.equal(same.given, edges.given)


def test_held_out_rows_keep_their_labels():
    """A model that is told the answer as its label scores near 0; with the labels of other rows it could not."""
    x = (torch.arange(400) % 3).float()[:, None]
    model = build_model(Schema.of(a=Category(3)), width=32, depth=1, context=(3,))
    fitted = fit(model, x, recipe=Recipe(steps=150, check_every=50), context=x.long())
    assert fitted.best_nats < 0.1


def test_gaps_may_hold_nan_in_the_loss_itself():
    model = build_model(Schema.of(a=Real(), b=Category(3)), width=8, depth=1)
    x, present = torch.tensor([[torch.nan, 1.0], [0.5, torch.nan]]), torch.tensor([[False, True], [True, False]])
    edge_loss(model, x, ardm().sample(present, seeded())).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_a_large_held_out_share_leaves_a_row_to_train_on():
    _, x = joint_rows(12)
    assert fit(build_model(SCHEMA, width=8, depth=1), x, recipe=Recipe(steps=2, held_out=0.99)).stopped == "finished"
