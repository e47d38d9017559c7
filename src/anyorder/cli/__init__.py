"""The command line: one command a verb. What is slow to load is loaded by the command that needs it."""

import io
import signal
import sys
from types import FrameType

from . import studio
from .commands import app

__all__ = ["app", "main", "studio"]


def ended(number: int, frame: FrameType | None) -> None:
    """A job that is cancelled tidies up: half-written files are removed."""
    raise SystemExit(128 + number)


def main() -> None:
    """The program `anyorder`: 0 fine, 1 a problem with input or files, 2 wrong usage, 130 interrupted, 143 ended by SIGTERM."""
    signal.signal(signal.SIGTERM, ended)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # bars and names print everywhere
    app(prog_name="anyorder")
