"""The curves of the acquisition benchmark as scores and as a picture."""

from pathlib import Path

import numpy as np
from acquisition_methods import Curve
from numpy.typing import NDArray
from summary import Score

COLOURS = {"anyorder": "#d1495b", "anyorder, random order": "#9a9a9a", "anyorder, fixed order": "#edae49"}
COLOURS |= {"anyorder, best fixed order": "#30638e", "MIWAE": "#00798c", "VAE": "#6a4c93", "VAE, EDDI's reward": "#8ac926"}


def area(curve: Curve, values: NDArray[np.float64]) -> float:
    """The mean height over what was spent: a curve is flat where nothing is measured."""
    if curve.cost[-1] == 0:
        return float(values.mean())
    if np.allclose(np.diff(curve.cost), curve.cost[1]):
        return float(values.mean())  # equal prices: the mean over all points
    return float(np.trapezoid(values, curve.cost) / curve.cost[-1])


def scores(curve: Curve) -> dict[str, Score]:
    """Means over what was spent, and the error half-way and at the end."""
    error, half = curve.error, len(curve.error) // 2
    means = {"error": area(curve, error), "log p": area(curve, curve.log_prob)}
    return {**means, "error half-way": float(error[half]), "error at the end": float(error[-1])}


def plot(table: str, curves: dict[str, list[Curve]], folder: Path) -> None:
    """Error and log-likelihood against what was spent; the band is one standard deviation over splits."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), constrained_layout=True)
    for name, found in curves.items():
        if not found:
            continue
        cost = np.mean([c.cost for c in found], axis=0)
        for panel, what in zip(panels, ("error", "log_prob"), strict=True):
            values = np.array([getattr(c, what) for c in found])
            colour = COLOURS.get(name, "#444444")
            panel.plot(cost, values.mean(0), label=name, color=colour, lw=2.4 if name == "anyorder" else 1.3)
            if name in ("anyorder", "MIWAE"):
                panel.fill_between(cost, *(values.mean(0) + k * values.std(0) for k in (-1, 1)), color=colour, alpha=0.12)
    for panel, what in zip(panels, ("error of the target", "log-likelihood of the target, nats"), strict=True):
        panel.set_xlabel("measured so far (price)" if table == "adult" else "measured so far")
        panel.set_ylabel(what)
        panel.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.suptitle(table)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"acquisition_{table}.png", dpi=110)
    plt.close(figure)
