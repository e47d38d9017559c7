"""A disk that fails: at a byte, or at a call (fsync, chmod, rename, the fsync of the folder), with an error or with the end of
the process. A process of its own does the work there; what is left on the disk is judged by who called.
"""

import os
import resource
import signal
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

from anyorder.errors import AnyOrderError

WELL, REFUSED, RAW = 0, 3, 4  # how a child ends: done, one of our errors, any other one
CALLS = ("fsync", "chmod", "replace")


@dataclass(frozen=True)
class Fault:
    """No file may grow beyond `byte` bytes, or the `nth` call of this name fails; `kill`: the process ends there."""

    kill: bool
    byte: int | None = None
    call: str = ""
    nth: int = 1

    def set_up(self):
        if self.byte is not None:  # the kernel's own limit, so that it also holds for writers that are not Python
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.byte, self.byte))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL if self.kill else signal.SIG_IGN)
            return
        real, count = getattr(os, self.call), iter(range(1, 1000))

        def broken(*arguments, **options):
            if next(count) != self.nth:
                return real(*arguments, **options)
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(5, "Input/output error")

        setattr(os, self.call, broken)


def faults(size, bytes_tried=5):
    """All calls there are, and some bytes of a file of this size: the first, the last, and some between."""
    for kill in (False, True):
        for byte in sorted({size * k // bytes_tried for k in range(bytes_tried)} | {max(size - 1, 0)}):
            yield Fault(kill, byte=byte)
        for call in CALLS:
            for nth in (1, 2):
                yield Fault(kill, call=call, nth=nth)


def in_child(work, set_up=lambda: None, seconds=120):
    """The exit code of a copy of this process that does the work; that of a signal is negative."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = RAW
    try:
        signal.alarm(seconds)
        with silence():
            set_up()
            work()
        code = WELL
    except AnyOrderError:
        code = REFUSED
    except BaseException as error:
        os.write(2, f"{error!r:.300}\n".encode())
    finally:
        os._exit(code)


@contextmanager
def silence():
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    warnings.simplefilter("ignore")
    yield
