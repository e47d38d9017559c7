"""A real table with gaps: train once, then ask for a marginal, a conditional and the missing cells.

178 Italian wines (inside scikit-learn): thirteen measurements and the cultivar. We hide 20 % of all cells, so that every
answer can stand next to the truth.
"""

import time

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import anyorder as ao
from anyorder import Question
from anyorder.training import ardm, mac_all_edges, mixture

console = Console(width=110)

# The table: measurements standardised, the cultivar as a code, 20 % of the cells hidden in every row.
data = load_wine()
names = [*data.feature_names, "cultivar"]
schema = ao.Schema(tuple(ao.Variable(name, ao.Category(3) if name == "cultivar" else ao.Real()) for name in names))
rng = np.random.default_rng(0)
rows = rng.permutation(len(data.data))
train, test = rows[:134], rows[134:]
hidden = rng.random((len(rows), len(names))) < 0.2
known = np.where(hidden[:, :-1], np.nan, data.data)
scaler = StandardScaler().fit(known[train])  # gaps are skipped


def encode(measurements: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.column_stack([scaler.transform(measurements), data.target]), dtype=torch.float32)


def unit(values: torch.Tensor, column: int) -> np.ndarray:
    """Back to the measurement's own unit."""
    return values.numpy() * scaler.scale_[column] + scaler.mean_[column]


truth, seen = encode(data.data), encode(known)
present = torch.tensor(~hidden)

holes_in_training = int(hidden[train].sum())
console.print(f"[bold]{len(train)} wines to learn from, {holes_in_training} of their cells hidden; {len(test)} to ask about[/]")
model = ao.build_model(schema, seed=0)
start = time.perf_counter()
recipe = ao.Recipe(law=mixture(ardm(), mac_all_edges()), steps=1500, check_every=50)
with ao.progress_bar("training") as progress:
    fitted = ao.fit(model, seen[train], present[train], recipe, progress=progress)
console.print(f"trained in {time.perf_counter() - start:.0f} s, stopped: {fitted.stopped}\n")

# A marginal: p(cultivar), nothing known.
everything = torch.ones(3, len(names), dtype=torch.bool)
each = torch.zeros(3, len(names))
each[:, -1] = torch.arange(3)
marginal = ao.mixture_log_prob(model, each, ao.ask(schema, everything, ["cultivar"]), ao.fixed_orders(len(names), 4)).exp()
frequency = np.bincount(data.target) / len(data.target)
console.print("[bold]p(cultivar)[/], nothing known: model", marginal.numpy().round(2), " truth", frequency.round(2), "\n")

# A conditional: p(cultivar | two measurements), for wines the model has not seen.
given = ["flavanoids", "color_intensity"]
question = ao.ask(schema, torch.ones(len(test), len(names), dtype=torch.bool), ["cultivar"], given)
with torch.inference_mode():
    law = model(truth[test], question.given).law(len(names) - 1)
table = Table(title="p(cultivar | flavanoids, color_intensity), five unseen wines")
for heading in (*given, "p(0)", "p(1)", "p(2)", "truth"):
    table.add_column(heading, justify="right")
for place, row in enumerate(test[:5]):
    measured = [f"{data.data[row, names.index(name)]:.2f}" for name in given]
    table.add_row(*measured, *(f"{p:.2f}" for p in law.pmf()[place]), str(data.target[row]))
console.print(table)
right = (law.pmf().argmax(-1).numpy() == data.target[test]).mean()
console.print(
    f"the likeliest cultivar is right for {right:.0%} of the unseen wines (always the commonest: {frequency.max():.0%})\n"
)

# Imputation: every hidden cell of the unseen wines, given what is left of its row, with draws instead of one guess.
draws = 200
holes = Question(given=present[test], target=~present[test])
many = seen[test].repeat_interleave(draws, 0)
filled = ao.sample(model, many, Question(*(m.repeat_interleave(draws, 0) for m in (holes.given, holes.target))), ao.seeded())
filled = filled.view(len(test), draws, len(names))
low, high = (filled.quantile(q, dim=1) for q in (0.05, 0.95))
cells = holes.target[:, :-1]
mean = filled.mean(1)[:, :-1]
error = ((mean - truth[test][:, :-1])[cells] ** 2).mean().sqrt()
plain = (truth[test][:, :-1][cells] ** 2).mean().sqrt()
inside = ((truth[test] >= low) & (truth[test] <= high))[:, :-1][cells].float().mean()
table = Table(title="five of the hidden cells, filled")
for heading in ("measurement", "mean", "90 % interval", "truth"):
    table.add_column(heading, justify="right")
for row, column in cells.nonzero()[:: max(1, int(cells.sum()) // 5)][:5].tolist():
    span = f"{unit(low[row, column], column):.2f} to {unit(high[row, column], column):.2f}"
    table.add_row(names[column], f"{unit(mean[row, column], column):.2f}", span, f"{data.data[test[row], column]:.2f}")
console.print(table)
console.print(
    f"all {int(cells.sum())} hidden measurements: error {error:.2f} standard deviations (the column's mean: {plain:.2f}); "
    f"{inside:.0%} of the truths lie inside their 90 % interval"
)
