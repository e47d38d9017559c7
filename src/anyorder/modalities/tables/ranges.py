"""What may be known of a cell besides its value: that it lies in a range, or in a set."""

from dataclasses import dataclass
from typing import Any, final

from ...errors import InputError


@final
@dataclass(frozen=True)
class Between:
    """From `low` to `high`, both included; None leaves an end open.

    >>> Between(30, 40)
    Between(low=30, high=40)
    """

    low: Any = None
    high: Any = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise InputError("Between(None, None) says nothing: give at least one end.")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InputError(f"Between({self.low!r}, {self.high!r}) is empty: the first end must not be above the second.")


@final
@dataclass(frozen=True)
class OneOf:
    """One of several values.

    >>> OneOf(("Oslo", "Bergen"))
    OneOf(values=('Oslo', 'Bergen'))
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not len(tuple(self.values)):
            raise InputError(f"OneOf got {self.values!r}; expected several values, such as OneOf(('a', 'b')).")
        object.__setattr__(self, "values", tuple(self.values))
