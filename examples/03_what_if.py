"""Questions with ranges and sets: what a part of the population looks like, new rows from it, and which rows do not belong.

178 wines from three growers (inside scikit-learn), thirteen chemical measurements each.
"""

from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_wine

from anyorder.estimator import AnyOrder
from anyorder.modalities.tables.ranges import Between, OneOf
from anyorder.training import progress_bar

console = Console(width=110)
data = load_wine(as_frame=True)
wines = data.frame.rename(columns={"target": "grower"})
wines["grower"] = wines["grower"].map({0: "first", 1: "second", 2: "third"})
with progress_bar() as progress:
    model = AnyOrder(callback=progress).fit(wines)

# A category given a range.
answers = Table(title="p(grower | alcohol), how many wines that is, and their share in the data")
for heading in ("alcohol", "first", "second", "third", "wines", "first", "second", "third"):
    answers.add_column(heading, justify="right")
for low, high in ((11.0, 12.5), (12.5, 13.5), (13.5, 15.0)):
    chances = model.conditional({"alcohol": Between(low, high)}, "grower").pmf()
    some = wines[wines["alcohol"].between(low, high)]["grower"]
    seen = some.value_counts(normalize=True)
    shown = [f"{chances[name]:.2f}" for name in ("first", "second", "third")]
    answers.add_row(f"{low} to {high}", *shown, str(len(some)), *(f"{seen.get(n, 0):.2f}" for n in ("first", "second", "third")))
console.print(answers)

# A number given a range and a set.
distribution = model.conditional({"grower": OneOf(("first", "second")), "color_intensity": Between(5, None)}, "proline")
bottom, top = distribution.interval(0.8)
console.print("proline of a dark wine from the first or second grower:")
console.print(f"median {distribution.quantile(0.5):.0f}, 80 % {bottom:.0f} to {top:.0f}")
for start, end, p in distribution.bins(12):
    console.print(f"  {start:5.0f} .. {end:5.0f}  {'█' * round(60 * p):<24s} {p:.2f}")

# New rows from a part of the population, without rejecting any.
new = model.sample(300, given={"grower": "third", "alcohol": Between(12.5, 13.0)})
real = wines[(wines["grower"] == "third") & wines["alcohol"].between(12.5, 13.0)]
console.print(f"\n300 new wines of the third grower with 12.5 to 13.0 % alcohol, next to the {len(real)} real ones (medians):")
for name in ("malic_acid", "flavanoids", "color_intensity", "proline"):
    console.print(f"  {name:<16s} {new[name].median():8.2f} {real[name].median():8.2f}")

# Swap one measurement between two wines: which row, which cell?
odd = wines.copy()
odd.loc[[10, 150], "proline"] = odd.loc[[150, 10], "proline"].to_numpy()
found = model.anomalies(odd)
worst = found.cells[:, found.columns.index("proline")].argsort()[::-1]
console.print(f"\nproline swapped between wines 10 and 150; most surprising are the values of wines {sorted(worst[:2].tolist())}")
spread, nats = model.consistency(wines).spread, -model.score(wines)
console.print(f"how likely a wine is varies by {spread:.2f} nats (of {nats:.0f}) with the order of asking")
