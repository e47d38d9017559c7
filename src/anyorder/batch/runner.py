"""A question about many files: what is finished is left alone, what is new is written whole or not at all."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple, final

from ..errors import AnyOrderError, InputError
from ..io.atomic import write_bytes, write_whole
from ..io.units import File, Unit, files_of, types_in, units_of
from ..modalities.tables.table_files import MORE_SUFFIXES, TABLE_SUFFIXES, table_suffix
from ..validation import whole_number
from .engines import Answer, Engine, Here
from .questions import BatchQuestion, Sample
from .worker import Failed, Worker, peak_memory

JOB = "_anyorder.json"  # beside the outputs: what was asked
ROWS_OF_SAMPLE_FILE = 2**16
Progress = Callable[[int, int], None]


class Shard(NamedTuple):
    """Each `of`-th file, from the `number`-th on, counted from 1: the share of one machine of a job array."""

    number: int = 1
    of: int = 1

    @classmethod
    def read(cls, text: str) -> "Shard":
        """
        >>> Shard.read("3/40")
        Shard(number=3, of=40)
        """
        number, mark, of = text.partition("/")
        if not (mark and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise InputError(f"--shard {text!r} is not understood; expected the number of a share and how many: 3/40.")
        return cls(int(number), int(of))

    def share(self, files: list[File]) -> list[File]:
        return files[self.number - 1 :: self.of]


@final
@dataclass
class Summary:
    """What a run did. `failed` are sentences, each of which names its file; `peak` is the memory of the largest process."""

    files: int = 0
    skipped: int = 0
    rows: int = 0
    seconds: float = 0.0
    workers: int = 1
    peak: int = 0
    peak_here: int = 0
    failed: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    def raise_for_failures(self) -> None:
        """One sentence for what went wrong, after all else is done."""
        if self.failed:
            more = f" (and {len(self.failed) - 1} more files failed)" if len(self.failed) > 1 else ""
            raise AnyOrderError(f"{self.failed[0]}{more} {self.files} files were written, {self.skipped} were finished before.")


def run(
    worker: Worker,
    source: str | Path | int,
    output: str | Path,
    engine: Engine = Here(),
    shard: Shard = Shard(),
    progress: Progress | None = None,
) -> Summary:
    """Answer the worker's question about every file of `source` (a pattern, a folder, a file) into files of the same names.

    For `sample`, `source` is how many rows to draw. Run again, it goes on where it ended; a file that fails does not keep others
    from being written. The answers are the same whatever the engine, the number of its workers and the shard.
    """
    start, output = time.monotonic(), Path(output)
    worker.check()
    files = sampled_files(source) if isinstance(worker.question, Sample) else table_files(source)
    keep_job(worker, output)
    mine = shard.share(files)
    wanted = {file: output / worker.question.output_name(file.name) for file in mine}
    refuse_inputs(wanted)
    todo = [file for file in mine if not is_finished(file, wanted[file])]
    done = Summary(skipped=len(mine) - len(todo), workers=engine.workers)
    units = units_to_do(worker, todo, None if isinstance(source, int) else files[0], source, done)
    for number, (file, answers) in enumerate(groupby(engine.answers(worker, units), key=lambda one: one.unit.file), start=1):
        write_answers(wanted[file], answers, done)
        if progress is not None:
            progress(number, len(todo))
    done.seconds, done.peak_here = time.monotonic() - start, peak_memory()
    return done


def table_files(source: str | Path | int) -> list[File]:
    if isinstance(source, int):
        raise InputError(f"Got {source} as the files to read; expected a pattern, a folder or the name of a file.")
    return files_of(Path(source), TABLE_SUFFIXES + MORE_SUFFIXES)


def sampled_files(rows: Any) -> list[File]:
    count = -(-whole_number("n", rows, 1) // ROWS_OF_SAMPLE_FILE)
    return [File(Path(), f"part-{number:05d}.parquet") for number in range(count)]


def keep_job(worker: Worker, output: Path) -> None:
    """Remember what was asked: the outputs of another question must not be taken for finished."""
    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is a file; many files are written into a folder. Name one with -o.")
    output.mkdir(parents=True, exist_ok=True)
    place, text = output / JOB, json.dumps(worker.identity(), indent=1, default=str)
    if not place.exists():
        write_bytes(place, text.encode())
        return
    before, now = json.loads(place.read_text()), json.loads(text)
    other = [name for name in now | before if now.get(name) != before.get(name)]
    if other:
        raise InputError(
            f"{str(output)!r} holds answers of another run: {', '.join(other)} differ{'s' if len(other) == 1 else ''}. "
            "Name another folder, or remove this one."
        )


def refuse_inputs(wanted: dict[File, Path]) -> None:
    for file, place in wanted.items():
        if place.exists() and file.path.exists() and place.samefile(file.path):
            raise InputError(f"{str(place)!r} is an input as well, and would be overwritten. Name another folder with -o.")


def is_finished(file: File, output: Path) -> bool:
    """It is there, and the input was not changed since."""
    return output.is_file() and (not file.path.is_file() or output.stat().st_mtime_ns >= file.path.stat().st_mtime_ns)


def units_to_do(worker: Worker, files: list[File], first: File | None, source: Any, done: Summary) -> Iterator[Unit]:
    """The units of the files, found when their turn comes; a file that cannot be read is noted, and others go on."""
    for file in files:
        if isinstance(worker.question, Sample):
            yield sampled_unit(file, source)
            continue
        try:
            units = units_of(file)
            if first is not None:
                check_like(file, first)
            yield from [Unit(file)] if worker.question.whole_files else units or [Unit(file, rows=0)]
        except AnyOrderError as error:
            done.failed.append(str(error))


def sampled_unit(file: File, rows: int) -> Unit:
    first = int(file.name[5:10]) * ROWS_OF_SAMPLE_FILE
    return Unit(file, first=first, rows=min(ROWS_OF_SAMPLE_FILE, rows - first))


def check_like(file: File, first: File) -> None:
    """Refuse a Parquet file whose columns or kinds of types are not those of the first one."""
    if file == first or {table_suffix(file.path), table_suffix(first.path)} != {".parquet"}:
        return
    wanted, found = ({field.name: field.type for field in types_in(one)} for one in (first, file))
    for name, kind in wanted.items():
        if name not in found:
            raise InputError(f"{file.name} has no column {name!r}, which {first.name} has. Add it, with gaps if need be.")
        if family(found[name]) != family(kind):
            raise InputError(
                f"{file.name} holds {found[name]} in its column {name!r}, {first.name} holds {kind}. Convert one of the files."
            )


def family(kind: Any) -> str:
    """What a type of pyarrow holds; a column of nothing may stand for any."""
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    return "moments" if types.is_timestamp(kind) or types.is_date(kind) else str(kind)


def write_answers(place: Path, answers: Iterator[Answer], done: Summary) -> None:
    """One output file of its answers, whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    rows = list[int]()
    try:
        write_whole(place, lambda beside: write_parts(beside, (part_of(one, done, rows) for one in answers)))
    except FailedFile as failure:
        done.failed.append(str(failure))
    else:
        done.files, done.rows = done.files + 1, done.rows + sum(rows)


class FailedFile(AnyOrderError):
    """A unit of the file has no answer."""


def part_of(answer: Answer, done: Summary, rows: list[int]) -> Any:
    if isinstance(answer, Failed):
        raise FailedFile(answer.why)
    done.peak = max(done.peak, answer.peak)
    done.notes.update(answer.notes)
    rows.append(answer.rows)
    return answer.content


def write_parts(beside: str, parts: Iterator[Any]) -> None:
    """Bytes one behind the other, or pyarrow tables as row groups of one file."""
    first = next(parts)
    if isinstance(first, bytes):
        with open(beside, "wb") as file:
            file.writelines(chain([first], parts))
        return
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(beside, first.schema) as writer:
        for table in chain([first], parts):
            writer.write_table(table.cast(first.schema), row_group_size=max(1, len(table)))


__all__ = ["BatchQuestion", "Shard", "Summary", "run"]
