"""Who answers the units: this process, several processes, Ray or Spark. All give the answers in the order of the units."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Any, final

from ..errors import AnyOrderError, InputError
from ..io.units import Unit
from .worker import Answered, Failed, Worker

Answer = Answered | Failed
AHEAD = 4  # units a process may be ahead of the one that is written next: what bounds the memory of answers that wait


@dataclass(frozen=True)
class Engine(ABC):
    """`workers` processes that answer units with a `Worker`."""

    workers: int = 1

    @abstractmethod
    def answers(self, worker: Worker, units: Iterable[Unit]) -> Iterator[Answer]:
        """The answers, in the order of the units."""


@final
class Here(Engine):
    """This very process."""

    def answers(self, worker: Worker, units: Iterable[Unit]) -> Iterator[Answer]:
        return map(worker, units)


class Clerk:
    """A process with the model, a pipe to it, and what it is working on."""

    def __init__(self, worker: Worker) -> None:
        context = get_context("spawn")  # a fork of a process with threads, as torch has, may hang
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(worker, other), daemon=True)
        self.process.start()
        other.close()  # so that the pipe ends when the process does
        self.task: tuple[int, Unit] | None = None

    def ask(self, number: int, unit: Unit) -> None:
        self.task = number, unit
        self.pipe.send(unit)

    def answer(self) -> tuple[int, Answer]:
        assert self.task is not None
        (number, unit), self.task = self.task, None
        try:
            return number, self.pipe.recv()
        except (EOFError, ConnectionError) as error:
            self.process.join(5)
            raise AnyOrderError(
                f"A worker ended without an answer at {unit} ({ending(self.process.exitcode)}). Finished files are kept: start "
                "again to go on, with fewer --workers if memory was short."
            ) from error

    def end(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by signal {-code}" + (", as the system does when memory is full" if code == -9 else "")
    return f"exit code {code}"


def serve(worker: Worker, pipe: Any) -> None:
    """What a process does: answer units until the pipe is closed."""
    try:
        while True:
            pipe.send(worker(pipe.recv()))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        pipe.close()


@final
class Processes(Engine):
    """Processes of this machine."""

    def answers(self, worker: Worker, units: Iterable[Unit]) -> Iterator[Answer]:
        clerks = [Clerk(worker) for _ in range(self.workers)]
        try:
            yield from self._in_order(clerks, enumerate(units))
        finally:
            for clerk in clerks:
                clerk.end()

    def _in_order(self, clerks: list[Clerk], tasks: Iterator[tuple[int, Unit]]) -> Iterator[Answer]:
        ready, following = dict[int, Answer](), 0
        while True:
            for clerk in clerks:
                room = following + AHEAD * len(clerks) - len(ready) - sum(one.task is not None for one in clerks) > following
                if clerk.task is None and room and (task := next(tasks, None)) is not None:
                    clerk.ask(*task)
            busy = {clerk.pipe: clerk for clerk in clerks if clerk.task is not None}
            if not busy:
                return
            for pipe in wait(list(busy)):
                number, found = busy[pipe].answer()  # type: ignore[index]
                ready[number] = found
            while following in ready:
                yield ready.pop(following)
                following += 1


@final
@dataclass(frozen=True)
class Ray(Engine):
    """Actors of a Ray cluster: that of RAY_ADDRESS if there is one, else one on this machine.

    All nodes must see the files, as on a shared disk; the outputs are written here.
    """

    def answers(self, worker: Worker, units: Iterable[Unit]) -> Iterator[Answer]:
        try:
            import ray
            from ray.exceptions import RayError
        except ImportError as error:
            raise InputError("--engine ray needs Ray, which is not installed: pip install 'anyorder[ray]'.") from error
        ours = not ray.is_initialized()
        if ours:
            ray.init(num_cpus=None, log_to_driver=False, include_dashboard=False, logging_level="ERROR")
        actors = [ray.remote(RayWorker).options(num_cpus=1).remote(worker) for _ in range(self.workers)]
        try:
            yield from self._in_order(ray, actors, iter(units))
        except RayError as error:
            reason = " ".join(str(error).split())[:200]
            raise AnyOrderError(
                f"A Ray worker ended without an answer ({reason}). Finished files are kept: start again."
            ) from error
        finally:
            for actor in actors:
                ray.kill(actor)
            if ours:
                ray.shutdown()

    def _in_order(self, ray: Any, actors: list[Any], units: Iterator[Unit]) -> Iterator[Answer]:
        """Every actor gets each so many-th unit, and is some units ahead of what is written."""
        waiting = list[Any]()
        for number, unit in enumerate(units):
            waiting.append(actors[number % len(actors)].answer.remote(unit))
            if len(waiting) >= AHEAD * len(actors):
                yield ray.get(waiting.pop(0))
        while waiting:
            yield ray.get(waiting.pop(0))


class RayWorker:
    """An actor: it loads the model once."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def answer(self, unit: Unit) -> Answer:
        return self.worker(unit)


@final
@dataclass(frozen=True)
class Spark(Engine):
    """Tasks of a Spark session: the one that is there, else one on this machine with so many threads of tasks.

    All nodes must see the files, as on a shared disk; the outputs are written here.
    """

    def answers(self, worker: Worker, units: Iterable[Unit]) -> Iterator[Answer]:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise InputError("--engine spark needs pyspark, which is not installed: pip install 'anyorder[spark]'.") from error
        active = SparkSession.getActiveSession()
        session = active or SparkSession.builder.master(f"local[{self.workers}]").appName("anyorder").getOrCreate()
        try:
            yield from self._in_turns(session, worker, iter(units))
        finally:
            if active is None:
                session.stop()

    def _in_turns(self, session: Any, worker: Worker, units: Iterator[Unit]) -> Iterator[Answer]:
        context = session.sparkContext
        shared = context.broadcast(worker)
        while some := list(islice(units, AHEAD * self.workers)):
            parts = context.parallelize(list(enumerate(some)), min(self.workers, len(some)))
            found = parts.mapPartitions(lambda tasks: ((number, shared.value(unit)) for number, unit in tasks)).collect()
            yield from (answer for _, answer in sorted(found, key=lambda one: one[0]))


ENGINES: dict[str, type[Engine]] = {"processes": Processes, "ray": Ray, "spark": Spark}


def engine_named(name: str | None, workers: int) -> Engine:
    """One process needs no others; `name` chooses who has several."""
    if name is None:
        return Here() if workers == 1 else Processes(workers)
    if name not in ENGINES:
        raise InputError(f"--engine {name!r} is unknown; expected one of {', '.join(ENGINES)}.")
    return ENGINES[name](workers)
