"""Commands on many files: which they are, who answers them, and what is said in the end."""

from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..io.units import is_pattern
from ..modalities.displays import seconds_text
from .printing import print_json, progress_of_steps, say, say_so

MOST_NOTES = 5


class Spread(NamedTuple):
    """Over how many processes, which share of the files, and by whose engine."""

    workers: int | None = None
    shard: str | None = None
    engine: str | None = None

    @property
    def said(self) -> bool:
        return self != Spread()


def is_batch(source: Path | None, output: Path | None, spread: Spread) -> bool:
    """Whether many files are meant: by their name, by a folder for the outputs, or by what is said of workers."""
    many = source is not None and (is_pattern(source) or source.is_dir())
    return many or spread.said or (output is not None and output.is_dir())


def answer(
    verb: str,
    model: Path,
    source: Path | int,
    output: Path | None,
    spread: Spread,
    json: bool,
    seed: int = 0,
    refused: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Ask the question of every file; exit code 1 if a file failed. `refused` are options that are for one table."""
    for flag, value in (refused or {}).items():
        if value:
            raise InputError(f"{flag} is for one table, and not for many files. Leave it out.")
    if output is None or (output.suffix and not output.is_dir()):
        raise InputError(f"Many files are written into a folder: name one, as in -o {output.stem if output else 'out'}/.")
    from ..batch import Shard, Worker, engine_named, run

    worker = Worker(model, verb, seed, **options)
    engine = engine_named(spread.engine, spread.workers or 1)
    shard = Shard() if spread.shard is None else Shard.read(spread.shard)
    with progress_of_steps(verb, 0) as progress:
        done = run(worker, source, output, engine, shard, progress)
    tell(done, output, json)
    done.raise_for_failures()


def tell(done: Any, output: Path, json: bool) -> None:
    """What was done, what it took, and what is worth knowing of the rows."""
    for note, count in done.notes.most_common(MOST_NOTES):
        say(f"note: {note}" + (f" (in {count} row groups)" if count > 1 else ""))
    if json:
        print_json({**vars(done), "notes": dict(done.notes), "output": str(output)})
        return
    skipped = f", {done.skipped} finished before" if done.skipped else ""
    speed = f", {done.rows / max(done.seconds, 1e-9):,.0f} rows a second" if done.rows else ""
    say_so(f"{done.files} files ({done.rows:,} rows) in {seconds_text(done.seconds)}{speed}, to {output}{skipped}")
    if done.files:
        say_so(f"memory at most {done.peak / 2**20:,.0f} MB a worker ({done.workers}), {done.peak_here / 2**20:,.0f} MB here")
