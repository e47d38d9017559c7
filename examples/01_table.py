"""A real table with gaps: train once, then ask for a marginal, a conditional and the missing cells.

442 patients (inside scikit-learn): ten measurements and how far their diabetes had progressed a year later. We hide 20 % of
all cells, so that every answer can stand next to the truth.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes

from anyorder.estimator import AnyOrder
from anyorder.training import progress_bar

NAMES = [
    "age",
    "sex",
    "bmi",
    "pressure",
    "cholesterol",
    "ldl",
    "hdl",
    "cholesterol/hdl",
    "log triglycerides",
    "glucose",
    "progression",
]
console = Console(width=110)
rng = np.random.default_rng(0)

patients = load_diabetes(as_frame=True, scaled=False).frame.set_axis(NAMES, axis=1)
patients["sex"] = patients["sex"].map({1: "code 1", 2: "code 2"})  # the source does not say which is which
hidden = rng.random(patients.shape) < 0.2
rows = rng.permutation(len(patients))
train, test = rows[:342], rows[342:]
table = patients.mask(hidden)
unseen = patients.iloc[test]
console.print(
    f"[bold]{len(train)} patients to learn from, {hidden[train].sum()} of their cells hidden; {len(test)} to ask about[/]"
)

start = time.perf_counter()
with progress_bar() as progress:
    model = AnyOrder(effort=0.5, callback=progress).fit(table.iloc[train])
console.print(f"trained in {time.perf_counter() - start:.0f} s\n")

# A marginal: p(sex), nothing known.
levels = patients["sex"].drop_duplicates().to_frame()
answers = Table(title="p(sex), nothing known")
for heading in ("", *levels["sex"]):
    answers.add_column(heading, justify="right")
share = patients["sex"].value_counts(normalize=True)
answers.add_row("model", *(f"{p:.2f}" for p in np.exp(model.score_samples(levels, target=["sex"]))))
answers.add_row("all patients", *(f"{share[name]:.2f}" for name in levels["sex"]))
console.print(answers)

# A conditional: p(progression | three measurements), for patients the model has not seen.
given = ["bmi", "pressure", "log triglycerides"]
answers = Table(title="p(progression | bmi, pressure, log triglycerides), five unseen patients")
for heading in (*given, "median", "90 % interval", "truth"):
    answers.add_column(heading, justify="right")
for patient in unseen.head().to_dict("records"):
    distribution = model.conditional({name: patient[name] for name in given}, "progression")
    low, high = distribution.interval(0.9)
    answers.add_row(
        *(f"{patient[n]:.2f}" for n in given),
        f"{distribution.quantile(0.5):.0f}",
        f"{low:.0f} to {high:.0f}",
        f"{patient['progression']:.0f}",
    )
console.print(answers)
gain = model.score_samples(unseen, ["progression"], given).mean() - model.score_samples(unseen, ["progression"]).mean()
console.print(f"knowing the three is worth {gain:.2f} nats about the progression of an unseen patient\n")

# Imputation: every hidden cell of the unseen patients, with draws instead of one guess.
numbers = patients.columns.drop("sex")
gaps = hidden[test][:, [NAMES.index(name) for name in numbers]]
truth = unseen[numbers].to_numpy(float)
draws = np.stack([frame[numbers].to_numpy(float) for frame in model.impute(table.iloc[test], draws=100)])
mean = model.transform(table.iloc[test])[numbers].to_numpy(float)
low, high = np.quantile(draws, [0.05, 0.95], axis=0)
answers = Table(title="five of the hidden cells, filled")
for heading in ("measurement", "mean", "90 % interval", "truth"):
    answers.add_column(heading, justify="right")
for row, column in np.argwhere(gaps)[:: gaps.sum() // 5][:5]:
    span = f"{low[row, column]:.2f} to {high[row, column]:.2f}"
    answers.add_row(numbers[column], f"{mean[row, column]:.2f}", span, f"{truth[row, column]:.2f}")
console.print(answers)
spread = patients[numbers].std().to_numpy()
error = np.sqrt((((mean - truth) / spread)[gaps] ** 2).mean())
plain = np.sqrt((((table.iloc[train][numbers].mean().to_numpy() - truth) / spread)[gaps] ** 2).mean())
inside = ((low <= truth) & (truth <= high))[gaps].mean()
console.print(
    f"all {gaps.sum()} hidden measurements: error {error:.2f} standard deviations (the column's mean: {plain:.2f}); "
    f"{inside:.0%} of the truths lie inside their 90 % interval of 100 draws"
)
