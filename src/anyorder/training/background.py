"""Work beside the work: one more thread for what mostly leaves Python's lock alone."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType
from typing import ParamSpec, TypeVar, final

P = ParamSpec("P")
R = TypeVar("R")


@final
class Background:
    """Jobs done in turn while the caller does something else. When the caller ends, what has not begun is dropped.

    A job that takes long should call `go_on` now and then: it raises KeyboardInterrupt if the caller ended with an error.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._given_up = Event()

    def start(self, job: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        return self._thread.submit(job, *args, **kwargs)

    def go_on(self) -> None:
        if self._given_up.is_set():
            raise KeyboardInterrupt

    def __enter__(self) -> "Background":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self._given_up.set()
        self._thread.shutdown(cancel_futures=True)
