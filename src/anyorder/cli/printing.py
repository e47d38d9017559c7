"""Documents as a person reads them on a terminal of eighty characters."""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from typer.core import TyperGroup

from ..errors import AnyOrderError
from ..modalities.displays import (
    OBEYED,
    Bar,
    bytes_text,
    chance_text,
    draw,
    number_text,
    percent,
    probability_text,
    seconds_text,
    shorten,
    span_labels,
    text_grid,
    visible,
)
from .question import quoted

Document = dict[str, Any]
MOST_BARS = 15


def print_json(document: Document) -> None:
    """One document on standard output, and nothing else."""
    text = json.dumps(finite(document), ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write(OBEYED.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text) + "\n")


def print_cells(text: str) -> None:
    """A table: into a pipe every character as it is, on a terminal nothing that it would obey."""
    sys.stdout.write("\t".join(map(visible, text.split("\t"))) if sys.stdout.isatty() else text)


def finite(item: Any) -> Any:
    """JSON has no infinity and no NaN: null in their place."""
    if isinstance(item, dict):
        return {key: finite(value) for key, value in item.items()}
    if isinstance(item, list):
        return [finite(value) for value in item]
    return None if isinstance(item, float) and not math.isfinite(item) else item


def say_so(text: str) -> None:
    """One line on standard output."""
    print(visible(text))


def tell(document: Document, show: Callable[[Document], None], json: bool) -> None:
    """The document as JSON, or as a person reads it."""
    if json:
        print_json(document)
    else:
        show(document)


class Printer:
    """Writes to standard output: colours on a terminal, plain text into a pipe."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self.width = min(self.console.width, 100)

    def line(self, text: str = "", style: str = "") -> None:
        self.console.print(Text(visible(text), style=style), soft_wrap=True)

    def pairs(self, *pairs: tuple[str, str]) -> None:
        """Names and values, one pair a line, the values below each other."""
        room = max(len(name) for name, _ in pairs)
        for name, value in pairs:
            self.console.print(Text.assemble("  ", (f"{visible(name):{room}}", "dim"), "  ", visible(value)), soft_wrap=True)

    def table(self, headings: list[str], rows: list[list[str]]) -> None:
        """Cells below each other; where the terminal ends, the last one is cut."""
        for place, text in enumerate(text_grid(headings, rows, self.width)):
            self.line(text, "" if place else "dim")

    def bars(self, bars: list[Bar]) -> None:
        for text in draw(bars, self.width - 2):
            self.line(f"  {text}")


def show_answers(document: Document) -> None:
    out = Printer()
    given = f" given {', '.join(document['given'])}" if document["given"] else ""
    for answer in document["answers"]:
        if "probability" in answer:
            out.line(f"{answer['wanted']}{given}", "bold")
            precision = f", recorded to {answer['precision']:g}" if "precision" in answer else ""
            out.pairs(("probability", probability_text(answer["probability"]) + precision))
            show_grounds(out, answer)
        elif answer["kind"] == "category":
            out.line(f"{answer['target']}{given}", "bold")
            show_category(out, answer)
            show_grounds(out, answer)
        else:
            out.line(f"{answer['target']}{given}", "bold")
            show_number(out, answer)
            show_grounds(out, answer)
        out.line()
    if "joint" in document:
        out.line(f"all of it{given}", "bold")
        out.pairs(("probability", probability_text(document["joint"]["probability"])))
        show_grounds(out, document["joint"])
    elif len(document["answers"]) > 1:
        out.line("Each of these is the distribution of one column alone, given the evidence; they are not joint.", "dim")


def show_grounds(out: Printer, answer: Document) -> None:
    """What an answer rests on: how many training rows match, what they say, and what every condition did."""
    if answer.get("rows") is not None:
        said = f": {percent(answer['share']).strip()}" if answer.get("share") is not None else ""
        match = "match" if answer.get("exactly", True) else "match about"
        out.line(f"  {answer['rows']:,} of the training rows {match}{said}", "dim")
    if moved := answer.get("conditions"):
        out.line("  moved by " + ", ".join(f"{one['condition']} {percent(one['moved']).strip()}" for one in moved), "dim")


def show_category(out: Printer, answer: Document) -> None:
    """The likeliest values as bars, what is left in one line."""
    found = [Bar(number_text(item["value"]), item["probability"]) for item in answer["probabilities"]]
    bars, rest = (found, []) if len(found) <= MOST_BARS + 1 else (found[:MOST_BARS], found[MOST_BARS:])
    out.bars(bars)
    if rest:
        out.line(f"  and {len(rest)} more values, together {percent(sum(bar.probability for bar in rest)).strip()}", "dim")


def show_number(out: Printer, answer: Document) -> None:
    bins, interval = answer["bins"], answer["interval"]
    lows, highs = ([edge_text(item[end]) for item in bins] for end in ("low", "high"))
    out.bars([Bar(span, item["probability"]) for span, item in zip(span_labels(lows, highs), bins, strict=True)])
    out.line()
    out.pairs(
        ("median", number_text(answer["median"])),
        ("mean", mean_text(answer["mean"], interval["low"], interval["high"])),
        (f"{100 * interval['level']:g} %", f"{number_text(interval['low'])} to {number_text(interval['high'])}"),
    )


def mean_text(mean: Any, low: Any, high: Any) -> str:
    """The mean of a number, to a hundredth of its interval or somewhat finer."""
    if not isinstance(mean, float) or not high > low:
        return number_text(mean)
    return number_text(round(mean, 2 - math.floor(math.log10(high - low))))


def edge_text(value: Any) -> str:
    """The edge of a bin: an instant to the minute."""
    return value[: len("2024-01-31 17:30")] if isinstance(value, str) else number_text(value)


def show_kinds(document: Document) -> None:
    out = Printer()
    for line in document["text"].splitlines():
        out.line(line)


FACTS: dict[str, tuple[str, Callable[[Any], str]]] = {  # how what a document says of a model is shown, in this order
    "what": ("a model of", str),
    "network": ("network", str),
    "counted": ("columns", str),
    "rows": ("learned from", lambda rows: f"{rows} rows"),
    "images": ("learned from", lambda images: f"{images} images"),
    "texts": ("learned from", lambda texts: f"{texts} texts"),
    "effort": ("effort", lambda effort: f"{effort:g}"),
    "held_out_nats": ("held out", lambda nats: f"{nats:.3f} nats a row by the network alone"),
    "held_out_bits_per_dimension": ("held out", lambda bits: f"{bits:.3f} bits per dimension"),
    "models": ("made of", ", ".join),
    "parameters": ("weights", lambda count: f"{count:,}"),
    "seconds": ("time", lambda seconds: seconds_text(seconds)),
    "keeps_rows": (
        "training rows",
        lambda kept: f"{kept} are in the file: share it only as you would the table" if kept else "none are in the file",
    ),
}


def show_model(document: Document) -> None:
    """What a model is, whatever it is of: its columns, if it has some, and the facts that are known."""
    out = Printer()
    if "columns" in document:
        show_columns(out, document)
        out.line()
    if "columns" in document:
        document = {**document, "counted": f"{len(document['columns'])} in the model, {len(document['left_out'])} left out"}
    known = [(label, text(document[fact])) for fact, (label, text) in FACTS.items() if document.get(fact) is not None]
    out.pairs(*known, ("file", f"{document['file']}, {bytes_text(document['bytes'])}"))


def show_columns(out: Printer, document: Document) -> None:
    rows = [[shorten(column["name"], 28), column["kind"], column_text(column)] for column in document["columns"]]
    out.table(["column", "kind", "values"], rows)
    if document["left_out"]:
        out.line("\nleft out", "bold")
        for name, reason in document["left_out"].items():
            out.line(f"  {shorten(name, 28)}: {reason}")
        out.line("  --kind COLUMN=category, or COLUMN=number, models one all the same", "dim")


def column_text(column: Document) -> str:
    if "levels" in column:
        return f"{len(column['levels'])}: {', '.join(shorten(quoted(str(level)), 20) for level in column['levels'])}"
    span = f"{number_text(column['low'])} to {number_text(column['high'])}" if "low" in column else ""
    scale = ", on the scale of its logarithm" if "scale" in column else ""
    return f"{span}, recorded to {precision_text(column)}{scale}"


def precision_text(column: Document) -> str:
    spacing = column["precision"]
    if column["kind"] == "date":
        days = spacing / 86400 if spacing >= 86400 else spacing
        return "the day" if days == 1 else f"{days:g} days"
    return f"{spacing:g} s" if column["kind"] == "instant" else f"{spacing:g}"


def show_score(document: Document) -> None:
    out = Printer()
    target = ", ".join(document["target"]) if document["target"] else "all columns"
    given = f" | {', '.join(document['given'])}" if document["given"] else ""
    out.line(f"log p({target}{given}), nats a row", "bold")
    out.pairs(
        ("rows", str(document["rows"])),
        ("mean", f"{document['mean']:.3f} ± {document['standard_error']:.3f}"),
        ("spread", f"{document['spread']:.3f}"),
    )
    if document["rows_with_gaps"]:
        out.line(f"  {document['rows_with_gaps']} rows have gaps in the target; a gap is not scored", "dim")
    out.line("\nlowest", "bold")
    out.pairs(*((f"row {item['row']}", f"{item['log_prob']:.3f}") for item in document["lowest"]))


def show_anomalies(document: Document) -> None:
    out = Printer()
    expected = f"{document['odd_by_chance']:.2g}"
    out.line(f"{document['odd']} of {document['cells']:,} cells have a chance below {document['threshold']:g}", "bold")
    out.line(f"  without errors about {expected} would; rows are counted from 1", "dim")
    rows = [
        [str(cell["row"]), shorten(cell["column"], 16), shorten(number_text(cell["value"]), 16), chance_text(cell["chance"])]
        for cell in document["top"]
    ]
    whys = [cell["why"] for cell in document["top"]]
    if rows:
        out.table(["row", "column", "value", "as unlikely", "why"], [[*row, why] for row, why in zip(rows, whys, strict=True)])
    if document["odd"] > len(rows):
        out.line(f"  and {document['odd'] - len(rows)} more: --top {document['odd']}, or a lower --threshold", "dim")


def show_report(document: Document) -> None:
    """The report as text, and where it was written."""
    out = Printer()
    for place, text in enumerate(document["text"].splitlines()):
        out.line(text, "" if place else "bold")
    for text in document["legend"]:
        out.line(f"  {text}", "dim")
    if "written" in document:
        out.line(f"written to {document['written']}")


def show_archive(document: Document) -> None:
    """What is in an archive, and whether it is whole."""
    out, size = Printer(), document["bytes"]
    inside = f", {document['model_bytes']:,} of them a model of what is inside" if document["model_bytes"] else ""
    out.line(f"{counted(document)} in {size:,} bytes{inside}")
    if "original_bytes" in document:
        out.line(f"the files had {document['original_bytes']:,} bytes: {document['original_bytes'] / size:.2f} times as many")
    if "bits_per_dimension" in document:
        out.line(f"{document['bits_per_dimension']:.3f} bits a value")
    name = (document["model"] or {}).get("name")
    by = f"the model{f' {name}' if name else ''}"
    out.line(f"{document['modelled_blocks']} of {document['blocks']} blocks are coded by {by}, the others by zstd")
    if "model_missing" in document:
        out.line(f"Without its model no more can be told: {document['model_missing']}")
    for column in document.get("columns", []):
        out.line(f"{column['bytes']:12,.0f} bytes  {column['name']}")
    for damage in document["damage"]:
        out.line(f"damaged: {damage}")


def counted(document: Document) -> str:
    """How many images, files, rows or whatever else there are."""
    from ..archives import Source

    known = {items for forms in Source.forms.values() for items in forms.values()}
    items = next(key for key in document if key in known)
    return f"{document[items]:,} {items if document[items] != 1 else items.removesuffix('s')}"


SECONDS_BETWEEN_LINES = 10.0  # seconds between two lines in a file


@contextmanager
def progress_of_steps(doing: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """It goes on whenever it is told (how many are done, of how many)."""
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lines_of(doing, console)
        return
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def lines_of(doing: str, console: Console) -> Callable[[int, int], None]:
    """A line every some seconds; what is quick says nothing."""
    last = time.monotonic()

    def tell(done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            console.print(f"{doing} {done}/{of}", soft_wrap=True, highlight=False)

    return tell


@contextmanager
def calls_shown(doing: str, model: Any, calls: int) -> Iterator[Callable[[int, int], None]]:
    """It goes on with every call of the network; told of items, it does nothing."""
    made = count(1)
    with progress_of_steps(doing, calls) as done:
        hook = model.register_forward_hook(lambda *_: done(next(made), calls))
        try:
            yield lambda done, of: None
        finally:
            hook.remove()


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
