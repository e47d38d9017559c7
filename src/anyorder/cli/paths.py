"""How paths are chosen, in the words of the command line: what to train for, along which order, in which steps."""

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputError
from ..modalities.base import listed
from ..modalities.images.regions import MODES
from ..subsets import CanonicalOrder, Cosine, Even, Order, Quadratic, Schedule
from ..training import Objective
from ..training.objectives import ace, ardm, mac, mac_all_edges, mac_exact, mdlm, mixture, sfarm

OBJECTIVES: Mapping[str, Callable[[], Objective]] = {
    "ardm": ardm,
    "mdlm": mdlm,
    "ace": ace,
    "mac": mac,
    "mac-exact": mac_exact,
    "mac-all-edges": mac_all_edges,
    "ardm+mac": lambda: mixture(ardm(), mac()),
    "sfarm": lambda: sfarm(MODES),
}
SCHEDULES: Mapping[str, Callable[[int], Schedule]] = {"even": Even, "quadratic": Quadratic, "cosine": Cosine}
ORDERS: Mapping[str, Callable[[int], Order]] = {
    "forward": lambda variables: CanonicalOrder(),
    "backward": lambda variables: CanonicalOrder().reversed(variables),
}


def objective_named(name: str | None) -> Objective | None:
    """What `--objective` means; SFARM's modes are those of images."""
    return None if name is None else found("--objective", name, OBJECTIVES)()


def order_named(name: str | None, variables: int) -> Order | None:
    """What `--order` means for so many variables."""
    return None if name is None else found("--order", name, ORDERS)(variables)


def schedule_named(name: str | None, steps: int | None) -> dict[str, Any]:
    """What `--schedule` and `--steps` mean, as options of a verb."""
    if name is None:
        return {"steps": steps}
    chosen = found("--schedule", name, SCHEDULES)
    if steps is None:
        raise InputError(f"--schedule {name} needs the number of steps: --steps 20.")
    return {"schedule": chosen(steps)}


def found(flag: str, name: str, among: Mapping[str, Any]) -> Any:
    if name not in among:
        raise InputError(f"{flag} {name!r} is unknown; expected {listed(among).replace(' and ', ' or ')}.")
    return among[name]
