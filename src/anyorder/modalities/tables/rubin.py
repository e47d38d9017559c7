"""One estimate from several imputed tables, with the uncertainty that the gaps add (Rubin's rules)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from ...errors import InputError


class Pooled(NamedTuple):
    """The pooled estimate, its standard error, the degrees of freedom, and the share of variance due to the gaps."""

    estimate: float
    standard_error: float
    degrees: float
    missing_share: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval by Student's t."""
        reach = self.standard_error * float(stats.t.ppf((1 + level) / 2, self.degrees))
        return self.estimate - reach, self.estimate + reach


def pool(estimates: Sequence[float], variances: Sequence[float]) -> Pooled:
    r"""Combine an analysis done on each of `model.impute(df, draws)`: its estimates and their squared standard errors.

    .. math:: T = \bar U + (1 + 1/m) B, \quad \nu = (m - 1) \left( 1 + \frac{\bar U}{(1 + 1/m) B} \right)^2

    with :math:`\bar U` the mean variance and B the variance between the m estimates.

    >>> pool([1.0, 1.2, 0.8], [0.04, 0.05, 0.03]).estimate
    1.0
    """
    q, u = np.asarray(estimates, dtype=float), np.asarray(variances, dtype=float)
    if q.ndim != 1 or q.shape != u.shape or len(q) < 2:
        raise InputError(
            f"pool got {q.shape} estimates and {u.shape} variances; expected two lists of the same length, at least 2."
        )
    if not (np.isfinite(q).all() and np.isfinite(u).all() and (u >= 0).all()):
        raise InputError("pool got a number that is not finite or a negative variance; expected squared standard errors.")
    within, between = float(u.mean()), (1 + 1 / len(q)) * float(q.var(ddof=1))
    total = within + between
    degrees = (len(q) - 1) * (1 + within / between) ** 2 if between > 0 else math.inf
    return Pooled(float(q.mean()), math.sqrt(total), degrees, between / total if total > 0 else 0.0)
