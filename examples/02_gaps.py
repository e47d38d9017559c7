"""A regression on a table with gaps: drop the rows, fill in one guess, or draw twenty tables and pool (Rubin's rules).

The diabetes table inside scikit-learn, a third of two measurements hidden where the disease progressed fast: the rows that are
left are no fair sample any more. We know the truth, so every method can stand next to it.
"""

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes

from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.rubin import pool
from anyorder.training import progress_bar

console = Console(width=110)
rng = np.random.default_rng(0)
whole = load_diabetes(as_frame=True, scaled=False).frame
chance = whole["target"].rank(pct=True)  # the faster the progression, the likelier the gap
table = whole.copy()
for name in ("bmi", "s5"):
    table.loc[rng.random(len(whole)) < 0.66 * chance, name] = np.nan


def slope(frame: pd.DataFrame) -> tuple[float, float]:
    """How much the target rises with a unit of bmi, s5 and bp held fixed: the estimate and its squared standard error."""
    X = np.column_stack([np.ones(len(frame)), frame[["bmi", "s5", "bp"]]]).astype(float)
    y = frame["target"].to_numpy(float)
    beta, rest, *_ = np.linalg.lstsq(X, y, rcond=None)
    variance = float(rest[0]) / (len(y) - X.shape[1]) * np.linalg.inv(X.T @ X)
    return float(beta[1]), float(variance[1, 1])


with progress_bar() as progress:
    model = AnyOrder(callback=progress).fit(table)
tables = model.impute(table, draws=20)
pooled = pool(*zip(*map(slope, tables), strict=True))

answers = Table(title=f"slope of the target on bmi; {table.isna().sum().sum()} of {2 * len(table)} measurements are missing")
for heading in ("", "slope", "95 % interval"):
    answers.add_column(heading, justify="left" if not heading else "right")
for name, frame in {
    "nothing missing": whole,
    "rows with gaps dropped": table.dropna(),
    "gaps filled with the column's mean": table.fillna(table.mean()),
    "gaps filled with our best guess": model.transform(table),
}.items():
    estimate, variance = slope(frame)
    reach = 1.96 * variance**0.5
    answers.add_row(name, f"{estimate:.2f}", f"{estimate - reach:.2f} to {estimate + reach:.2f}")
low, high = pooled.interval()
answers.add_row("[bold]twenty drawn tables, pooled", f"[bold]{pooled.estimate:.2f}", f"[bold]{low:.2f} to {high:.2f}")
console.print(answers)
console.print(f"{pooled.missing_share:.0%} of the pooled variance comes from the gaps; a single filled table would hide it.")
