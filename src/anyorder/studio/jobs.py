"""Heavy work, one job at a time: the others wait in a queue, each can be watched and cancelled."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from queue import Queue
from typing import Any, final

from ..errors import AnyOrderError, InputError
from .notes import heard

Document = dict[str, Any]
MOST_WAITING, MOST_REMEMBERED = 20, 60
OVER = ("done", "failed", "cancelled")
UNEXPECTED = "Something went wrong inside anyorder ({}). The terminal that runs the studio says more; nothing saved is lost."
log = logging.getLogger("anyorder.studio")


@final
@dataclass
class Job:
    """One piece of work: how far it is, what came of it."""

    id: str
    title: str
    state: str = "waiting"  # then running; then one of OVER
    progress: Document = field(default_factory=dict)
    result: Document | None = None
    error: str | None = None
    notes: list[str] = field(default_factory=list)  # what the library remarked
    version: int = 0  # counts what changed, for those who watch
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _enough: threading.Event = field(default_factory=threading.Event)

    def raise_if_cancelled(self) -> None:
        """To be called by the work now and then."""
        if self._cancelled.is_set():
            raise KeyboardInterrupt

    def tell(self, **progress: Any) -> None:
        """How far the work is; whoever watches sees it. A cancelled job ends here."""
        self.raise_if_cancelled()
        self.progress = progress
        self.version += 1

    @property
    def is_enough(self) -> bool:
        """Whether somebody wants what there is, now."""
        return self._enough.is_set()

    def document(self) -> Document:
        return {
            "job": self.id,
            "title": self.title,
            "state": self.state,
            "progress": self.progress,
            "result": self.result,
            "error": self.error,
            "notes": self.notes,
            "version": self.version,
        }

    def _end(self, state: str, result: Document | None = None, error: str | None = None) -> None:
        self.result, self.error, self.state = result, error, state
        self.version += 1


Work = Callable[[Job], Document]


@final
class Jobs:
    """A queue, and the one thread that works it off."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._queue: Queue[tuple[Job, Work] | None] = Queue()
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="studio-jobs", daemon=True)
        self._thread.start()

    def start(self, title: str, work: Work) -> Job:
        """Do the work when all that waits before it is done."""
        with self._lock:
            waiting = sum(job.state == "waiting" for job in self._jobs.values())
            if waiting >= MOST_WAITING:
                raise InputError(f"{waiting} jobs are waiting already. Cancel some, or wait until they are done.")
            job = Job(f"j{next(self._numbers)}", title)
            self._jobs[job.id] = job
            for old in [one for one in self._jobs.values() if one.state in OVER][: -MOST_REMEMBERED or None]:
                del self._jobs[old.id]
            self._queue.put((job, work))
        return job

    def get(self, id: str) -> Job | None:
        return self._jobs.get(id)

    def all(self) -> list[Job]:
        """The newest first."""
        return list(self._jobs.values())[::-1]

    def cancel(self, job: Job) -> None:
        """A job that waits is over at once, one that runs when it looks up next."""
        job._cancelled.set()
        with self._lock:
            if job.state == "waiting":
                job._end("cancelled")

    def finish(self, job: Job) -> None:
        """Training that runs ends with the best it has; other work goes on."""
        job._enough.set()

    def close(self) -> None:
        """Cancel everything and wait a moment for the thread."""
        for job in self.all():
            self.cancel(job)
        self._queue.put(None)
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            job, work = item
            with self._lock:
                if job.state in OVER:
                    continue
                job.state = "running"
                job.version += 1
            do(job, work)


def do(job: Job, work: Work) -> None:
    """The work, and what came of it; a person is told what they can do about an error, the log has the rest."""
    try:
        with heard() as job.notes:
            result = work(job)
        job._end("done", result)
    except KeyboardInterrupt:
        job._end("cancelled")
    except AnyOrderError as error:
        job._end("failed", error=str(error))
    except MemoryError:
        job._end("failed", error="There is not enough memory for this. Try with fewer rows, or smaller images.")
    except Exception as error:
        log.exception("%s failed", job.title)
        job._end("failed", error=UNEXPECTED.format(type(error).__name__))
