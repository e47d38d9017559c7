"""What every benchmark shares: its flags, its results as one file that a later run continues, and its table.

    parser = flags(__doc__, tables=SOURCES)                     # --tables/--data, --seeds, --effort, --out
    results = Results.open("density", parser.parse_args(), title="...", keys=("table", "method"))
    if not results.has(table="yacht", method="Lace", seed=1000):
        results.add({"joint": 14.8, "marginal": 9.6}, table="yacht", method="Lace", seed=1000)
    results.print()

A score is a number (of one seed), a pair (mean, spread) that was taken from an older report, None where there is nothing to
score, or a text that says why there is none. `bench/report.py` makes the pages of `docs/benchmarks` from the files.
"""

import argparse
import hashlib
import itertools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from summary import Document, Score, summary

from anyorder import __version__

BENCH = Path(__file__).parent
REPORT_SEEDS = 1000  # splits from here on are for the report; those below are for development
WHICH = {"tables", "seeds", "methods", "systems", "mechanisms"}  # scores are told apart by them
NO_SETTINGS = WHICH | {"out", "again", "only_cached", "timeout", "picture", "plots", "measure", "before", "speed"}


def flags(about: str | None, tables: Iterable[str] = (), default: Sequence[str] = (), seeds: Sequence[int] = (0,)) -> Any:
    """A parser with the flags that every benchmark has; it may add its own."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = list(tables)
    parser.add_argument(
        "--tables",
        "--data",
        dest="tables",
        nargs="+",
        choices=names or None,
        default=list(default) or names,
        help="what to measure on",
    )
    parser.add_argument(
        "--seeds", nargs="+", type=span, default=[list(seeds)], action=Chained, help="of splits, such as 0 1 or 1000-1019"
    )
    parser.add_argument("--effort", type=float, default=1.0, help="of training, or of repetition where nothing is trained")
    parser.add_argument("--out", type=Path, help="where results go, and are continued; default: bench/results/NAME.json")
    return parser


class Chained(argparse.Action):
    """Several spans of seeds as one list."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, list(itertools.chain.from_iterable(values)))


def span(text: str) -> list[int]:
    """One seed, or a range of them with both ends: 1000-1019."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


@dataclass
class Results:
    """The scores of a benchmark so far, and the file they are in."""

    path: Path
    document: Document
    places: dict[tuple[Any, ...], int] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        name: str,
        args: argparse.Namespace,
        title: str,
        keys: Sequence[str],
        compare: Sequence[str] = (),
        protocol: str = "",
    ) -> "Results":
        """Those of the file, if they were made from the same sources with the same settings, or none.

        `keys` tell scores apart, besides the seed; `compare` names scores of which differences to anyorder are shown. The
        `protocol` says how the numbers were made where they are not of random splits, whose seeds say it.
        """
        args.seeds = list(itertools.chain.from_iterable(s if isinstance(s, list) else [s] for s in args.seeds))
        seeds, kind = args.seeds, protocol or kind_of(args.seeds)
        path = args.out or BENCH / "results" / (f"{name}.json" if kind != "development" else f"{name}_development.json")
        settings = {k: plain(v) for k, v in sorted(vars(args).items()) if k not in NO_SETTINGS}
        fresh: Document = {
            "name": name, "title": title, "protocol": kind, "command": command(), "commit": commit(), "sources": sources(),
            "date": today(), "machine": machine(), "version": __version__, "seeds": sorted(seeds), "settings": settings,
            "keys": list(keys), "compare": list(compare), "notes": [], "scores": [],
        }  # fmt: skip
        if not path.exists():
            return cls(path, fresh)
        kept: Document = json.loads(path.read_text())
        for what in ("sources", "settings", "protocol", "keys"):
            if kept.get(what) != fresh[what]:
                differs = f"{what} ({kept.get(what)}, now {fresh[what]})"
                raise SystemExit(f"{path} holds results of other {differs}. Move it away, or name another --out.")
        merged = fresh | {"scores": kept["scores"], "notes": kept["notes"], "seeds": sorted({*kept["seeds"], *seeds})}
        found = cls(path, merged)
        found.places = {found.key(record): i for i, record in enumerate(kept["scores"])}
        return found

    def key(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(record.get(name) for name in (*self.document["keys"], "seed"))

    def has(self, **key: Any) -> bool:
        return self.key(key) in self.places

    def add(self, scores: Mapping[str, Score], **key: Any) -> None:
        """The scores of one table, seed, method, or whatever the keys are; the file holds them at once."""
        if missing := {*self.document["keys"]} - {*key}:
            raise ValueError(f"a score without {missing}")
        record = {**key, **{name: rounded(value) for name, value in scores.items()}}
        place = self.places.setdefault(self.key(key), len(self.document["scores"]))
        self.document["scores"][place : place + 1] = [record]
        self.write()

    def note(self, sentence: str) -> None:
        """What the table alone does not say."""
        if sentence not in self.document["notes"]:
            self.document["notes"].append(sentence)
            self.write()

    def write(self) -> None:
        """As a whole or not at all, one score a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        beside.write_text(as_json(self.document))
        beside.replace(self.path)

    def print(self, columns: Sequence[str] | None = None) -> None:
        """All scores, or those named: a terminal is narrow."""
        headings, rows = summary(self.document, columns)
        table = Table(title=self.document["title"])
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="left" if number < len(self.document["keys"]) else "right")
        for row in rows:
            table.add_row(*row)
        Console(width=160).print(table)
        for sentence in self.document["notes"]:
            print(sentence)
        print(f"{self.path}")


def kind_of(seeds: Sequence[int]) -> str:
    """Report or development, by the seeds of the splits."""
    kinds = {"report" if seed >= REPORT_SEEDS else "development" for seed in seeds}
    if len(kinds) > 1:
        raise SystemExit(
            f"Seeds from {REPORT_SEEDS} on are for the report, those below for development: one file holds one kind."
        )
    return kinds.pop()


def as_json(document: Document) -> str:
    """Indented, but one score a line, so that a change of one is a change of one line."""
    lines = ",\n".join(f"  {json.dumps(record, ensure_ascii=False)}" for record in document["scores"])
    frame = json.dumps({**document, "scores": []}, indent=1, ensure_ascii=False)
    return frame.replace('"scores": []', '"scores": [\n' + lines + "\n ]" if lines else '"scores": []') + "\n"


def rounded(value: Score) -> Score:
    """Six digits are enough for a score."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def command() -> str:
    """What was typed; of folders and files elsewhere only the name."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *words])


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"


@cache
def sources(folder: Path = BENCH.parent) -> str:
    """A digest of the library's sources: results of different ones do not belong into one file."""
    files = sorted((folder / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


@cache
def commit(folder: Path = BENCH) -> str:
    """The commit that is checked out, with a mark if sources were changed since."""
    git = ["git", "-C", str(folder)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "-uno", "--", "*.py"], capture_output=True, text=True, check=False)
    return f"{head} and changes" if changed.stdout.strip() else head or "unknown"
