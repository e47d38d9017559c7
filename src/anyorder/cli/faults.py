"""What goes wrong, as one line on standard error and an exit code; and words that disturb no pipe."""

import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from ..drawing import visible
from ..errors import AnyOrderError


class Verbs(TyperGroup):
    """Faults of the input become one line on standard error and exit code 1, warnings a line each."""

    def invoke(self, ctx: Any) -> Any:
        notes: dict[str | None, None] = {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = lambda message, *_: notes.setdefault(getattr(message, "command_line", str(message)))
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (AnyOrderError, OSError) as error:
            say(" ".join(str(error).splitlines()))
            raise typer.Exit(1) from error
        except MemoryError as error:
            say("There is not enough memory for this. Take fewer rows or images at a time, or a machine with more.")
            raise typer.Exit(1) from error
        finally:
            for text in filter(None, notes):
                say(f"note: {text}")


def say(text: str) -> None:
    """A word on standard error, where it disturbs no pipe."""
    print(f"anyorder: {visible(text)}", file=sys.stderr)
