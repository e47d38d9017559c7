"""The verbs of the command line: read the arguments, call one function, show or write what it answers."""

import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from .dialect import Dialect
from .faults import Verbs, say
from .files import Frame, check_model_output, check_output, check_place, in_bytes, read_table, write_table
from .loading import load, load_all, load_both
from .question import Is, parse_evidence, parse_names, parse_question

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="From `anyorder fit`, or a shipped one: mnist.", show_default=False)
]
TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help=".csv, .tsv, .parquet, .xlsx or .jsonl, also with .gz; - reads csv from standard input.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="A table file, by its suffix; without it, csv on standard output.", show_default=False),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        "--kinds",
        metavar="COLUMN=KIND",
        help="Overrule a kind: category, number or leave out. May be repeated.",
        show_default=False,
    ),
]
Na = Annotated[
    list[str] | None,
    typer.Option(metavar="[COLUMN=]VALUE", help="A value that stands for a gap, as 999. May be repeated.", show_default=False),
]
Sep = Annotated[str | None, typer.Option(help="What is between cells of a text file; or tab.", show_default="found out")]
Decimal = Annotated[str | None, typer.Option(help="The decimal mark of a text file.", show_default="found out")]
Encoding = Annotated[str | None, typer.Option(help="That of a text file, such as latin1.", show_default="found out")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, and nothing else.")]


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: anyorder fit people.csv",
)


def print_version(asked: bool) -> bool:
    if asked:
        from importlib.metadata import version

        print(f"anyorder {version('anyorder')}")
        raise typer.Exit
    return asked


@app.callback()
def anyorder(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train once on a table, then ask in any order: any columns given any others, gaps filled, new rows, strange rows."""


@app.command(epilog="Example: anyorder fit people.csv -o people.ao --kind zip=category")
def fit(
    table: TableFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The model file; people.ao for people.csv.", show_default=False)
    ] = None,
    effort: Annotated[float, typer.Option(help="How long to train; 2 takes twice as long as 1.")] = 1.0,
    size: Annotated[str, typer.Option(help="The network for images: small, fine, medium, large or a paper's.")] = "small",
    seed: Seed = 0,
    kind: Kinds = None,
    na: Na = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    codec: Annotated[bool, typer.Option("--codec", help="Train a codec, too, for `anyorder compress`.")] = False,
    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="A column that says how often every row counts; it is not learned.", show_default=False
        ),
    ] = None,
    without_rows: Annotated[bool, typer.Option("--without-rows", help="Keep no training rows in the file, to share it.")] = False,
    json: AsJson = False,
) -> None:
    """Learn a table, or a folder of images, and write the model to one file.

    Empty cells are gaps, and so are NA, N/A, NaN, None and null, as in pandas; n.a., ? and - too, among numbers.
    ISO dates are read as dates. `anyorder kinds` shows, before any training, what every column is taken for.
    """
    path = output or model_path(table)
    kinds, dialect = kinds_of(kind or []), Dialect(sep, decimal, encoding)
    if codec and weight:
        raise InputError("--weight and --codec do not go together: a codec stores every row once. Leave one of them out.")
    if codec and str(table) == "-":
        raise InputError("--codec needs a file or a folder, not standard input.")
    check_model_output(path, table)
    if table.is_dir():
        if kinds or without_rows or weight or na or dialect != Dialect():
            raise InputError(
                f"{table.name} is a folder of images; --kind, --na, --sep, --decimal, --encoding, --weight and --without-rows "
                "are for tables."
            )
        from . import images, printing

        settings = {"effort": effort, "size": size, "random_state": seed, "codec": codec}
        printing.tell(images.fit_folder(table, path, **settings), printing.show_images, json)
        return
    if size != "small":
        raise InputError(f"--size {size} is for images; a table's network has one size. Use --effort.")
    frame = read_table(table, dialect=dialect)
    from ..training import progress_bar
    from . import models, printing

    coded = models.cells_of_file(table) if codec else None
    with progress_bar() as progress:
        settings = {
            "effort": effort,
            "random_state": seed,
            "kinds": kinds,
            "keep_rows": not without_rows,
            "na": sentinels_of(na or []),
        }
        document = models.fit(frame, path, progress, coded, weight, **settings)
    printing.tell(document, printing.show_fit, json)


@app.command(epilog="Example: anyorder kinds people.csv --kind zip=category")
def kinds(
    table: TableFile,
    kind: Kinds = None,
    na: Na = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    json: AsJson = False,
) -> None:
    """What `anyorder fit` would take every column for, and why; nothing is trained."""
    frame = read_table(table, dialect=Dialect(sep, decimal, encoding))
    from . import printing
    from .models import look

    printing.tell(look(frame, kinds_of(kind or []), sentinels_of(na or [])), printing.show_kinds, json)


@app.command(epilog="Example: anyorder ask people.ao 'income | age=30..40, city in (Oslo, Bergen)'")
def ask(
    model: ModelFile,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="Columns asked for, then | and what is known.", show_default=False)
    ],
    json: AsJson = False,
) -> None:
    """What a column is likely to be, given others.

    The answer is a list of bars for a category, a histogram for a number.

    What is known: name=value, name=low..high (either end may be left out), name in (a, b). Without | nothing is known.
    A target with a value, "income=50000 | age=39", is answered with its probability.
    Names and values with commas or other marks go in quotes: city="Washington, D.C."
    """
    asked = parse_question(question)
    from . import answers, printing

    document = answers.ask(load(model), asked)
    printing.tell(document, printing.show_answers, json)


@app.command(epilog="Example: anyorder impute people.ao gaps.csv -o full.csv --intervals")
def impute(
    model: ModelFile,
    table: TableFile,
    output: Output = None,
    draws: Annotated[
        int | None,
        typer.Option(
            min=1, help="So many random fillings, one below the other, told apart by a column draw.", show_default=False
        ),
    ] = None,
    intervals: Annotated[bool, typer.Option("--intervals", help="Add NAME_low and NAME_high for the gaps of numbers.")] = False,
    level: Annotated[float, typer.Option(min=0.01, max=0.999, help="The probability between the two.")] = 0.9,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Fill gaps, with the best guess or with random draws.

    Cells that are no gaps stay as they are.
    """
    if draws and intervals:
        raise typer.BadParameter("--intervals goes with the single best guess; --draws shows the spread itself.")
    check_files(output, model, table)
    from . import tables, texts

    dialect = Dialect(sep, decimal, encoding)
    face, frame, content = load_all(model, table, seed, dialect)
    filled, about = tables.impute(face, frame, draws)
    if intervals:
        filled = tables.with_intervals(face, frame, filled, level)
    if output or not json:
        filled = texts.as_written(filled, frame, table, content, output or Path("table.csv"), dialect)
    deliver(face, filled, about, output, json, texts.separator(table, content, dialect))


@app.command(epilog="Example: anyorder score people.ao rows.csv --target income --given age,city")
def score(
    model: ModelFile,
    table: TableFile,
    target: Annotated[
        list[str] | None, typer.Option(help="Columns to score; all that are not given.", show_default=False)
    ] = None,
    given: Annotated[list[str] | None, typer.Option(help="Columns that are known.", show_default=False)] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write row and log_prob of every row here.", show_default=False)
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    json: AsJson = False,
) -> None:
    """The log-probability of every row, in nats.

    Numbers count as they were recorded; columns that are neither target nor given are averaged out.

    Rows are counted from 1, the header not counted.
    """
    targets, known = parse_names(target or []), parse_names(given or [])
    check_files(output, model, table)
    from . import printing, tables

    face, frame = load_both(model, table, dialect=Dialect(sep, decimal, encoding))
    scores, document = tables.score(face, frame, targets, known)
    if output:
        write_table(scores, output)
        document["written"] = str(output)
    if json:
        printing.print_json({**document, "log_prob": scores["log_prob"].tolist()})
    else:
        printing.show_score(document)


@app.command(epilog="Example: anyorder anomalies people.ao rows.csv --top 5")
def anomalies(
    model: ModelFile,
    table: TableFile,
    top: Annotated[int, typer.Option(min=1, help="How many cells.")] = 20,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Show cells whose value is that unlikely; 1 shows the top of all.")
    ] = 0.001,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    json: AsJson = False,
) -> None:
    """The cells that do not fit the rest of their rows, the oddest first.

    The scale is the same for all columns: how likely a value is that is as unlikely as this one, or more so. Values that were
    never seen in training come first. Rows are counted from 1, the header not counted.
    """
    from . import answers, printing

    face, frame = load_both(model, table, dialect=Dialect(sep, decimal, encoding))
    document = answers.anomalies(face, frame, top, threshold)
    printing.tell(document, printing.show_anomalies, json)


@app.command(epilog="Example: anyorder report people.ao held_out.csv -o report.html")
def report(
    model: ModelFile,
    table: TableFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write it as one HTML file, too.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """How good the model is on rows that were held out of `anyorder fit`, column by column.

    Every column is asked given all others, and compared with asking it alone and with ridge or logistic regression.
    """
    if output is not None and output.suffix.lower() != ".html":
        raise InputError(f"The report is written as HTML: name it {output.stem}.html, not {output.name}.")
    if output is not None:
        check_place(output, model, table)
    from . import answers, printing

    face, frame = load_both(model, table)
    printing.tell(answers.report(face, frame, output), printing.show_report, json)


@app.command(
    "ask-next", epilog="Example: anyorder ask-next clinic.ao --target outcome --known 'age=63, bp=140' --costs costs.csv"
)
def ask_next(
    model: ModelFile,
    target: Annotated[str, typer.Option(help="The column that you finally want to know.", show_default=False)],
    known: Annotated[
        list[str] | None, typer.Option(help="What is known: name=value, .... May be repeated.", show_default=False)
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="A table with the columns name, cost and perhaps group; without it, every column costs 1.", show_default=False
        ),
    ] = None,
    budget: Annotated[float, typer.Option(min=0, help="What may be spent.", show_default="no limit")] = math.inf,
    worth: Annotated[float, typer.Option(help="What a nat is worth, in costs.", show_default="no limit")] = math.inf,
    certain: Annotated[
        float | None,
        typer.Option(help="Stop at this probability of a category, or width of a number's 90 % interval.", show_default=False),
    ] = None,
    ahead: Annotated[int, typer.Option(min=1, max=3, help="Weigh sets of so many measurements; 1 is one at a time.")] = 1,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Which measurement is worth making next, and when to stop: a conversation about one record.

    It proposes, you type the value, it shows the target again. With --json, one proposal and no conversation.
    """
    from . import measuring, printing

    prices = measuring.read_prices(costs) if costs else measuring.Prices()
    visit = measuring.start(load(model, seed), target, known or [], prices, measuring.Rules(budget, worth, certain, ahead))
    if json:
        printing.print_json(visit.document())
    else:
        measuring.converse(visit, input)


@app.command(epilog="Example: anyorder info people.ao")
def info(model: ModelFile, json: AsJson = False) -> None:
    """What a model file holds: columns, kinds, training rows."""
    from . import models, printing

    document = models.info(model)
    printing.tell(document, printing.show_info if "columns" in document else printing.show_images, json)


def deliver(model: Any, frame: Frame, about: dict[str, Any], output: Path | None, json: bool, sep: str = ",") -> None:
    """A table: to its file, or to standard output as csv, or as JSON."""
    from . import printing, tables

    if output:
        write_table(frame, output, sep=sep)
        about["written"] = str(output)
    if json:
        printing.print_json(about if output else {**about, "table": tables.records(model, frame)})
    elif output:
        gaps = f", {about['gaps']} gaps filled" if "gaps" in about else ""
        say(f"wrote {len(frame)} rows to {output}{gaps}")
    else:
        sys.stdout.write(in_bytes(frame, Path("table.csv"), sep=sep).decode())


def check_files(output: Path | None, *inputs: Path) -> None:
    if output:
        check_output(output, *inputs)


def model_path(table: Path) -> Path:
    """people.ao beside people.csv.gz."""
    if str(table) == "-":
        raise typer.BadParameter("a table from standard input has no name: name the model with -o.")
    return table.with_name(table.name.removesuffix(".gz")).with_suffix(".ao")


def kinds_of(texts: list[str]) -> dict[str, str]:
    """{"zip": "category"} from "zip=category"."""
    from ..data.kinds import KINDS

    kinds: dict[str, str] = {}
    for part in parse_evidence(texts):
        if not isinstance(part.wanted, Is) or part.wanted.text not in KINDS:
            raise InputError(f"--kind for {part.name!r} is not understood; expected category, number, log, linear or leave out.")
        kinds[part.name] = part.wanted.text
    return kinds


def sentinels_of(texts: list[str]) -> dict[str | None, list[str]] | None:
    """{"age": ["999"]} from "age=999", and {None: ["unknown"]} from "unknown", which stands for a gap in every column."""
    found: dict[str | None, list[str]] = {}
    for text in texts:
        name, mark, value = text.rpartition("=")
        found.setdefault(name if mark else None, []).append(value)
    return found or None
