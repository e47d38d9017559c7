"""The results of the imputation benchmark as markdown: one table per data set and mechanism, then RMSE / CRPS of all in one."""

from collections.abc import Iterable, Mapping
from statistics import mean, stdev
from typing import TypeVar

from imputation_scores import IScores, Scores

T = TypeVar("T")
Results = dict[tuple[str, str, str, int], Scores | str]  # table, mechanism, method, seed -> scores, or why there are none
IResults = dict[tuple[str, str, str, int], IScores | str]
OURS, BEFORE = "anyorder", "before"
COLUMNS = {"rmse": "RMSE", "crps": "CRPS", "coverage": "90 % interval covers", "accuracy": "accuracy", "nats": "nats per cell"}
DIFFERENCES = {name: f"{heading} - ours" for name, heading in COLUMNS.items() if name != "coverage"}
COSTS = {"fit_seconds": "fit s", "ms_per_row_and_draw": "ms per row and draw", "peak_mb": "peak MB"}


def print_report(results: Results, draws: int) -> None:
    for table, mechanism in unique((key[0], key[1]) for key in results):
        print_one(results, table, mechanism)
    print_overview(results)
    print_nearest(results)
    print("\nMean +- standard deviation over seeds. Differences: theirs - ours on the same cells +- standard error over seeds.")
    print(f"Coverage of {OURS} is exact, by its cdf, on columns in which no value makes up over a twentieth of the rows;")
    print(f"that of peers comes from {draws} draws on all columns of numbers, which would show only about")
    print(f"{expected_coverage(draws):.2f} for a perfect sampler.")


def print_one(results: Results, table: str, mechanism: str) -> None:
    print(f"\n### {table}, {mechanism}\n")
    heads = ["method", *COLUMNS.values(), "covered of all", *DIFFERENCES.values(), *COSTS.values(), "seeds"]
    print_heads(heads)
    for method in unique(key[2] for key in results if key[:2] == (table, mechanism)):
        found = of_method(results, table, mechanism, method)
        scored = scores_of(results, table, mechanism, method)
        cells = [spread([getattr(one, name) for one in scored.values()]) for name in COLUMNS]
        cells.append(covered_of_all(list(scored.values())))
        ours = scores_of(results, table, mechanism, OURS)
        cells += [difference(scored, ours, name) if method != OURS else "" for name in DIFFERENCES]
        cells += [plain([getattr(one, name) for one in scored.values()]) for name in COSTS]
        left = sum(one.left for one in scored.values())
        notes = [f"{left} cells left empty"] if left else []
        notes += unique(one for one in found.values() if isinstance(one, str))
        print("| " + " | ".join([method, *cells, "; ".join([str(len(scored)), *notes])]) + " |")


def print_heads(heads: list[str]) -> None:
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))


def print_iscores(results: IResults) -> None:
    """One table per data set and mechanism: the energy I-score, what it is the mean of, and the costs."""
    for table, mechanism in unique((key[0], key[1]) for key in results):
        rows = {key[2:]: found for key, found in results.items() if key[:2] == (table, mechanism)}
        scored = {key: one for key, one in rows.items() if isinstance(one, IScores)}
        columns = unique(name for one in scored.values() for name in one.by_column)
        print(f"\n### {table}, {mechanism}\n")
        print_heads(["method", "energy I-score", "- ours", *columns, *COSTS.values(), "seeds"])
        ours = {seed: one for (name, seed), one in scored.items() if name == OURS}
        for method in unique(key[0] for key in rows):
            theirs = {seed: one for (name, seed), one in scored.items() if name == method}
            cells = [spread([one.iscore for one in theirs.values()])]
            cells.append(difference(theirs, ours, "iscore") if method != OURS else "")
            cells += [spread([one.by_column[name] for one in theirs.values()]) for name in columns]
            cells += [plain([getattr(one, name) for one in theirs.values()]) for name in COSTS]
            why = unique(found for (name, _), found in rows.items() if name == method and isinstance(found, str))
            print("| " + " | ".join([method, *cells, "; ".join([str(len(theirs)), *why])]) + " |")
    print("\nLower is better. Mean +- standard deviation over seeds. Differences: theirs - ours +- standard error over seeds.")


def print_overview(results: Results) -> None:
    columns = unique((key[0], key[1]) for key in results)
    print("\n### RMSE / CRPS\n")
    print(
        "| method | "
        + " | ".join(f"{table} {mechanism}" for table, mechanism in columns)
        + " |\n|---"
        + "|---" * len(columns)
        + "|"
    )
    for method in unique(key[2] for key in results):
        cells = []
        for table, mechanism in columns:
            scored = [one for one in of_method(results, table, mechanism, method).values() if isinstance(one, Scores)]
            pairs = [(one.rmse, one.crps) for one in scored if one.rmse is not None and one.crps is not None]
            cells.append(" / ".join(f"{mean(values):.3f}" for values in zip(*pairs, strict=True)) if pairs else "-")
        print(f"| {method} | " + " | ".join(cells) + " |")


def print_nearest(results: Results) -> None:
    """For every table and mechanism the peers that come nearest to us, or are ahead."""
    print("\n### The nearest peers\n")
    heads = ["table, gaps"]
    for name in ("CRPS", "RMSE"):
        heads += [f"least {name} of a peer", "theirs - ours", "ours / theirs"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for table, mechanism in unique((key[0], key[1]) for key in results):
        ours = scores_of(results, table, mechanism, OURS)
        peers = [name for name in unique(key[2] for key in results) if name not in (OURS, BEFORE)]
        theirs = {name: scores_of(results, table, mechanism, name) for name in peers}
        whole = {name: scored for name, scored in theirs.items() if scored.keys() >= ours.keys()}
        cells = [cell for name in ("crps", "rmse") for cell in nearest(name, whole, ours)]
        print("| " + " | ".join([f"{table}, {mechanism}", *cells]) + " |")


def nearest(name: str, theirs: dict[str, dict[int, Scores]], ours: dict[int, Scores]) -> list[str]:
    """The peer that is best at this score on our seeds, how far it is from us, and the ratio."""
    means = {peer: mean_on(name, scored, ours) for peer, scored in theirs.items()}
    known = {peer: value for peer, value in means.items() if value is not None}
    own = mean_on(name, ours, ours)
    if not known or own is None:
        return ["", "", ""]
    best = min(known, key=lambda peer: known[peer])
    return [f"{best} {known[best]:.3f}", difference(theirs[best], ours, name), f"{own / known[best]:.3f}"]


def mean_on(name: str, scored: dict[int, Scores], seeds: Iterable[int]) -> float | None:
    values = [getattr(scored[seed], name) for seed in seeds]
    return mean(values) if values and None not in values else None


def scores_of(results: Results, table: str, mechanism: str, method: str) -> dict[int, Scores]:
    return {seed: one for seed, one in of_method(results, table, mechanism, method).items() if isinstance(one, Scores)}


def covered_of_all(scored: list[Scores]) -> str:
    """All cells counted alike, whatever their seed."""
    pairs = [(one.coverage, one.covered_of) for one in scored if one.coverage is not None]
    cells = sum(count for _, count in pairs)
    return f"{sum(share * count for share, count in pairs) / cells:.3f} ({cells})" if cells else ""


def of_method(results: Results, table: str, mechanism: str, method: str) -> dict[int, Scores | str]:
    return {key[3]: found for key, found in results.items() if key[:3] == (table, mechanism, method)}


def difference(theirs: Mapping[int, Scores | IScores], ours: Mapping[int, Scores | IScores], name: str) -> str:
    """Paired by seed: the hidden cells are the same."""
    pairs = [(getattr(theirs[seed], name), getattr(ours[seed], name)) for seed in theirs if seed in ours]
    return spread([their - our for their, our in pairs if their is not None and our is not None], sign="+", of_mean=True)


def spread(values: list[float | None], sign: str = "", of_mean: bool = False) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    if len(known) == 1:
        return f"{known[0]:{sign}.3f}"
    width = stdev(known) / (len(known) ** 0.5 if of_mean else 1)
    return f"{mean(known):{sign}.3f} +- {width:.3f}"


def plain(values: list[float]) -> str:
    return f"{mean(values):.3g}" if values else ""


def expected_coverage(draws: int) -> float:
    """Of the interpolated 5 % and 95 % quantiles of k uniform draws, if the truth is one more; near that for other
    distributions.
    """
    return 0.9 * (draws - 1) / (draws + 1)


def unique(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
