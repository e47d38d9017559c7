"""Which measurement is worth making next: 442 diabetes patients (inside scikit-learn), and how ill they were a year later.

Age and sex are known to everybody; weighing and taking the blood pressure cost little, a blood panel costs more.
The same as a conversation: anyorder ask-next patients.ao --target progression --known "age=63, sex=2" --costs costs.csv
"""

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes

from anyorder.estimator import AnyOrder
from anyorder.training import progress_bar

console = Console(width=100)
serum = {"s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "ratio", "s5": "triglycerides", "s6": "glucose"}
patients = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={**serum, "target": "progression"})
patients["sex"] = patients["sex"].map({1.0: "1", 2.0: "2"})
shuffled = patients.sample(frac=1, random_state=0).reset_index(drop=True)
train, test = shuffled[60:], shuffled[:60].reset_index(drop=True)
with progress_bar() as progress:
    model = AnyOrder(callback=progress).fit(train)

# One patient: what would tell most about the progression, for the money?
costs = {"bmi": 1, "bp": 2, "lipids": 20, "glucose": 8}
groups = {"lipids": ["cholesterol", "ldl", "hdl", "ratio", "triglycerides"]}
known = {"age": 63.0, "sex": "2"}
console.print(model.next_best(known, "progression", costs, groups))

# Sixty patients, each on a path of their own, until nothing is worth its price; a nat is worth 60.
start = test.copy()
start[[c for c in test.columns if c not in ("age", "sex")]] = np.nan
path = model.acquire(start, "progression", test, costs, groups, worth=60.0)
everything = model.acquire(start, "progression", test, costs, groups)
truth = test["progression"].to_numpy()[:, None]
table = Table(title="error of the guessed progression after each measurement, and what was spent")
for heading in ("measured", "error", "spent", "error", "spent"):
    table.add_column(heading, justify="right")
for k in range(everything.cost.shape[1]):
    cells = []
    for one in (path, everything):
        at = min(k, one.cost.shape[1] - 1)
        error = np.sqrt(((one.guess["progression"] - truth) ** 2).mean(0))[at]
        cells += [f"{error:.1f}", f"{one.cost[:, at].mean():.1f}"]
    table.add_row(str(k), *cells)
console.print(table)
console.print("left: stop when it is not worth it; right: measure all")
console.print(path.steps["measurement"].value_counts().to_dict(), f"of {len(test)} patients")
