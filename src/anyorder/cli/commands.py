"""The verbs of the command line: read the arguments, call one function, show or write what it answers."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..io.atomic import check_place
from ..io.units import is_pattern
from ..modalities.tables.table_files import (
    Dialect,
    Frame,
    check_model_output,
    check_output,
    in_bytes,
    read_bytes,
    read_table,
    table_in,
    write_table,
)
from .printing import Verbs, say
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
Order = Annotated[
    str | None, typer.Option(help="One order instead of several: forward (of the columns), or backward.", show_default=False)
]
Schedule = Annotated[
    str | None, typer.Option(help="How --steps are spread: even, quadratic (few values at first) or cosine.", show_default=False)
]
Mode = Annotated[str | None, typer.Option(help="Of a model trained for SFARM's modes: one of them.", show_default=False)]
Label = Annotated[
    str | None, typer.Option(help="The class of the images: its number, or the name of its folder.", show_default=False)
]
Steps = Annotated[int | None, typer.Option(min=1, help="Network calls per row or image.", show_default="one per value")]
Temperature = Annotated[float, typer.Option(help="Below 1 what is drawn is more usual, above 1 stranger.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Of many files: so many processes.", show_default="1", rich_help_panel="Many files")
]
ShardOption = Annotated[
    str | None,
    typer.Option("--shard", help="Of many files: one share, as 3/40.", show_default=False, rich_help_panel="Many files"),
]
EngineOption = Annotated[
    str | None, typer.Option("--engine", help="Of many files: ray or spark.", show_default=False, rich_help_panel="Many files")
]
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


def load(model: Path, verb: str, seed: int = 0, **options: Any) -> Any:
    """The model in a file, if it answers this question with these options."""
    from ..estimator import AnyOrder
    from ..modalities.base import ask

    model_ = AnyOrder.load(model).set_params(random_state=seed)
    ask(model_.fitted_, verb, options)
    return model_


def load_both(model: Path, verb: str, table: Path, seed: int = 0, dialect: Dialect = Dialect()) -> tuple[Any, Frame]:
    """The model, and the table with the types the model knows."""
    model_, frame, _ = load_all(model, verb, table, seed, dialect)
    return model_, frame


def load_all(model: Path, verb: str, table: Path, seed: int = 0, dialect: Dialect = Dialect()) -> tuple[Any, Frame, bytes]:
    """The model, the table with the types the model knows, and the content of its file, which may have come from a pipe."""
    from ..modalities.tables.as_known import fit_to, text_columns

    model_ = load(model, verb, seed)
    if not hasattr(model_.encoder_, "columns"):
        raise InputError(f"This command reads tables, and {model.name} is a model of {model_.fitted_.what}.")
    content = read_bytes(table)
    return model_, fit_to(table_in(content, table, text_columns(model_.encoder_), dialect), model_.encoder_), content


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
    size: Annotated[
        str | None, typer.Option(help="The network for images: small, fine, medium, large or a paper's.", show_default="small")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="What to train for: ardm, mdlm, ace, mac, mac-exact, mac-all-edges, ardm+mac, sfarm.", show_default=False
        ),
    ] = None,
    base: Annotated[
        int | None, typer.Option(help="Of images: learn values digit by digit in this base (upscaling).", show_default=False)
    ] = None,
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
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--no-stream", help="Read in parts, or all rows at once.", show_default="by size"),
    ] = None,
    json: AsJson = False,
) -> None:
    """Learn a table, or a folder of images, and write the model to one file.

    Empty cells are gaps, and so are NA, N/A, NaN, None and null, as in pandas; n.a., ? and - too, among numbers.
    ISO dates are read as dates. `anyorder kinds` shows, before any training, what every column is taken for.
    """
    path = output or model_path(table)
    if codec and weight:
        raise InputError("--weight and --codec do not go together: a codec stores every row once. Leave one of them out.")
    if codec and is_pattern(table):
        raise InputError("--codec needs one file or one folder, not a pattern. Fit it to one of the files.")
    if codec and str(table) == "-":
        raise InputError("--codec needs a file or a folder, not standard input.")
    check_model_output(path, table)
    from .paths import objective_named

    own = {
        "objective": ("--objective", objective_named(objective)),
        "base": ("--base", base),
        "kinds": ("--kind", kinds_of(kind or []) or None),
        "na": ("--na", sentinels_of(na or [])),
        "keep_rows": ("--without-rows", False if without_rows else None),
        "size": ("--size", size),
    }
    how: dict[str, tuple[str, Any]] = {
        "sep": ("--sep", sep),
        "decimal": ("--decimal", decimal),
        "encoding": ("--encoding", encoding),
    }
    how |= {"weight": ("--weight", weight), "stream": ("--stream", stream)}
    settings, written = (
        {name: (flag, value) for name, (flag, value) in options.items() if value is not None} for options in (own, how)
    )
    from ..modalities.base import check_settings
    from ..modalities.registry import modality_reading
    from ..training import progress_bar
    from ..training.distributed import joined
    from . import models, printing

    modality = modality_reading(table)
    check_settings(modality, {name: flag for name, (flag, _) in settings.items()})
    check_settings(modality, {name: flag for name, (flag, _) in written.items()}, "read")
    chosen = {"effort": effort, "random_state": seed, **{name: value for name, (_, value) in settings.items()}}
    with joined(path.with_name(f"{path.name}.run")) as world, progress_bar() as progress:
        how_written = {name: value for name, (_, value) in written.items()}
        document = models.fit(modality, table, path, how_written, progress, codec, world, **chosen)
    if world.is_writer:
        printing.tell(document, printing.show_model, json)


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
    from . import asking, printing

    document = asking.ask(load(model, "conditional"), asked)
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
    workers: Workers = None,
    shard: ShardOption = None,
    engine: EngineOption = None,
    json: AsJson = False,
) -> None:
    """Fill gaps, with the best guess or with random draws.

    Cells that are no gaps stay as they are.
    """
    if draws and intervals:
        raise typer.BadParameter("--intervals goes with the single best guess; --draws shows the spread itself.")
    from . import batches

    dialect, spread = Dialect(sep, decimal, encoding), batches.Spread(workers, shard, engine)
    if batches.is_batch(table, output, spread):
        one = {"--intervals": intervals}
        batches.answer("impute", model, table, output, spread, json, seed, one, dialect=dialect, draws=draws)
        return
    check_files(output, model, table)
    from . import filling

    model_, frame, content = load_all(model, "impute", table, seed, dialect)
    filled, about = filling.impute(model_, frame, draws)
    if intervals:
        filled = filling.with_intervals(model_, frame, filled, level)
    if output or not json:
        filled = filling.as_written(filled, frame, table, content, output or Path("table.csv"), dialect)
    deliver(model_, filled, about, output, json, filling.separator(table, content, dialect))


@app.command(epilog="Example: anyorder score people.ao rows.csv --target income --given age,city")
def score(
    model: ModelFile,
    table: TableFile,
    target: Annotated[
        list[str] | None, typer.Option(help="Columns to score; all that are not given.", show_default=False)
    ] = None,
    given: Annotated[list[str] | None, typer.Option(help="Columns that are known.", show_default=False)] = None,
    order: Order = None,
    steps: Steps = None,
    schedule: Schedule = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write row and log_prob of every row here.", show_default=False)
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    workers: Workers = None,
    shard: ShardOption = None,
    engine: EngineOption = None,
    json: AsJson = False,
) -> None:
    """The log-probability of every row, in nats.

    Numbers count as they were recorded; columns that are neither target nor given are averaged out.

    Rows are counted from 1, the header not counted.
    """
    targets, known = parse_names(target or []), parse_names(given or [])
    from . import batches

    dialect, spread = Dialect(sep, decimal, encoding), batches.Spread(workers, shard, engine)
    if batches.is_batch(table, output, spread):
        one = {"--order": order, "--steps": steps, "--schedule": schedule}
        asked = {"target": tuple(targets), "given": tuple(known)}
        batches.answer("score", model, table, output, spread, json, 0, one, dialect=dialect, **asked)
        return
    check_files(output, model, table)
    from . import filling, paths, printing

    model_, frame = load_both(model, "score_samples", table, dialect=dialect)
    how = {"order": paths.order_named(order, len(model_.schema_)), **paths.schedule_named(schedule, steps)}
    scores, document = filling.score(model_, frame, targets, known, **how)
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
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Of many files: the folder to write to.", show_default=False)
    ] = None,
    workers: Workers = None,
    shard: ShardOption = None,
    engine: EngineOption = None,
    json: AsJson = False,
) -> None:
    """The cells that do not fit the rest of their rows, the oddest first.

    The scale is the same for all columns: how likely a value is that is as unlikely as this one, or more so. Values that were
    never seen in training come first. Rows are counted from 1, the header not counted.
    """
    from . import batches

    dialect, spread = Dialect(sep, decimal, encoding), batches.Spread(workers, shard, engine)
    if batches.is_batch(table, output, spread):
        batches.answer("anomalies", model, table, output, spread, json, dialect=dialect, threshold=threshold)
        return
    if output is not None:
        raise InputError("-o is for the anomalies of many files, and names a folder: those of one table are shown. Leave it out.")
    from . import asking, printing

    model_, frame = load_both(model, "anomalies", table, dialect=dialect)
    document = asking.anomalies(model_, frame, top, threshold)
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
    from . import asking, printing

    model_, frame = load_both(model, "report", table)
    printing.tell(asking.report(model_, frame, output), printing.show_report, json)


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
    from . import asking, printing

    prices = asking.read_prices(costs) if costs else asking.Prices()
    visit = asking.start(load(model, "next_best", seed), target, known or [], prices, asking.Rules(budget, worth, certain, ahead))
    if json:
        printing.print_json(visit.document())
    else:
        asking.converse(visit, input)


@app.command(epilog="Example: anyorder info people.ao")
def info(model: ModelFile, json: AsJson = False) -> None:
    """What a model file holds: columns, kinds, training rows."""
    from . import models, printing

    printing.tell(models.info(model), printing.show_model, json)


def deliver(model: Any, frame: Frame, about: dict[str, Any], output: Path | None, json: bool, sep: str = ",") -> None:
    """A table: to its file, or to standard output as csv, or as JSON."""
    from . import filling, printing

    if output:
        write_table(frame, output, sep=sep)
        about["written"] = str(output)
    if json:
        printing.print_json(about if output else {**about, "table": filling.records(model, frame)})
    elif output:
        gaps = f", {about['gaps']} gaps filled" if "gaps" in about else ""
        say(f"wrote {len(frame)} rows to {output}{gaps}")
    else:
        printing.print_cells(in_bytes(frame, Path("table.csv"), sep=sep).decode())


def check_files(output: Path | None, *inputs: Path) -> None:
    if output:
        check_output(output, *inputs)


def model_path(table: Path) -> Path:
    """people.ao beside people.csv.gz."""
    if str(table) == "-":
        raise typer.BadParameter("a table from standard input has no name: name the model with -o.")
    if is_pattern(table):
        raise typer.BadParameter("a pattern of names is no name: name the model with -o.")
    return table.with_name(table.name.removesuffix(".gz")).with_suffix(".ao")


def kinds_of(texts: list[str]) -> dict[str, str]:
    """{"zip": "category"} from "zip=category"."""
    from ..modalities.tables.kinds import COLUMN_KIND_NAMES

    kinds: dict[str, str] = {}
    for part in parse_evidence(texts):
        if not isinstance(part.wanted, Is) or part.wanted.text not in COLUMN_KIND_NAMES:
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


@app.command(epilog="Example: anyorder sample people.ao -n 1000 --given city=Oslo --given age=30..40 -o new.csv")
def sample(
    model: ModelFile,
    n: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many rows or images.")] = 10,
    given: Annotated[
        list[str] | None, typer.Option(help="What is known, as in `anyorder ask`. May be repeated.", show_default=False)
    ] = None,
    output: Output = None,
    grid: Annotated[Path | None, typer.Option(help="Of a model of images: draw them into this file.", show_default=False)] = None,
    film: Annotated[Path | None, typer.Option(help="And all steps into this .gif file.", show_default=False)] = None,
    steps: Steps = None,
    label: Label = None,
    mode: Mode = None,
    order: Order = None,
    schedule: Schedule = None,
    temperature: Temperature = 1.0,
    seed: Seed = 0,
    workers: Workers = None,
    shard: ShardOption = None,
    engine: EngineOption = None,
    json: AsJson = False,
) -> None:
    """Draw new rows, given the values of some columns; or new images; or text: --given "In the beginning ____" fills the gaps."""
    from . import batches, paths

    spread = batches.Spread(workers, shard, engine)
    if batches.is_batch(None, output, spread):
        one = {"--grid": grid, "--film": film, "--steps": steps, "--label": label, "--mode": mode, "--order": order}
        one |= {"--schedule": schedule, "--temperature": temperature != 1.0}
        from .cells import evidence

        known = evidence(load(model, "sample").encoder_, parse_evidence(given or [])) or None
        batches.answer("sample", model, n, output, spread, json, seed, one, given=known)
        return
    check_files(output if grid is None and (output is None or output.suffix != ".txt") else None, model)
    chosen = {"given": given, "label": label, "mode": mode, "order": order, "schedule": schedule}
    model_ = load(model, "sample", seed, **chosen)
    if "restore" in model_.fitted_.verbs():
        from . import texts

        if grid is not None or film is not None:
            raise InputError(f"--grid and --film are for pictures; {model.name} is a model of text. Use -o.")
        texts.sample(model_, n, given, output, json, steps=steps, temperature=None if temperature == 1.0 else temperature)
        return
    parts = parse_evidence(given or [])
    how = {"order": paths.order_named(order, len(model_.schema_)), **paths.schedule_named(schedule, steps)}
    drawn_as_pictures = "film" in model_.fitted_.verbs()
    if not drawn_as_pictures:
        if grid is not None or film is not None:
            raise InputError(f"--grid and --film are for pictures; {model.name} is a model of {model_.fitted_.what}. Use -o.")
        from . import filling

        drawn, about = filling.sample(model_, n, parts, temperature=temperature, **how)
        deliver(model_, drawn, about, output, json)
        return
    if grid is None or output is not None:
        raise InputError(
            f"{model.name} is a model of {model_.fitted_.what}: say into which picture to draw them, --grid new.png."
        )
    from ..modalities.images.pixels import check_lossless
    from . import pictures, printing

    drawn = {**how, "temperature": temperature, "label": label, "mode": mode}
    check_lossless(grid)
    check_place(grid, model)
    if film is not None:
        pictures.check_film(film, drawn)
        check_place(film, model, grid)
    document = pictures.sample(model_, n, drawn, steps, grid, film)
    printing.tell(document, lambda d: printing.say_so(f"{n} images: {d['file']}" + (f", {d['film']}" if film else "")), json)


@app.command(epilog="Example: anyorder inpaint digits.ao photo.png --half right -n 4 -o filled.png")
def inpaint(
    model: ModelFile,
    photo: Annotated[Path, typer.Argument(metavar="IMAGE", help="The image to complete.", show_default=False)],
    mask: Annotated[
        Path | None, typer.Option(help="An image painted (not black) where something is missing.", show_default=False)
    ] = None,
    box: Annotated[str | None, typer.Option(metavar="X,Y,W,H", help="A box that is missing.", show_default=False)] = None,
    half: Annotated[str | None, typer.Option(help="left, right, top or bottom.", show_default=False)] = None,
    n: Annotated[int, typer.Option("-n", "--draws", min=1, help="How many completions.")] = 4,
    steps: Steps = None,
    label: Label = None,
    mode: Mode = None,
    schedule: Schedule = None,
    temperature: Temperature = 1.0,
    output: Annotated[Path, typer.Option("-o", "--output", help="All side by side; and a file each, named after it.")] = Path(
        "inpainted.png"
    ),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Fill what is missing of an image, several times; no known pixel is touched."""
    from ..modalities.images.pixels import check_lossless
    from . import paths, pictures, printing

    check_lossless(output)
    check_place(output, photo, model, *([mask] if mask else []))

    how = {"temperature": temperature, "label": label, "mode": mode, **paths.schedule_named(schedule, steps)}
    document = pictures.inpaint(load(model, "inpaint", seed), photo, pictures.Missing(mask, box, half), n, how, steps, output)
    printing.tell(document, lambda d: printing.say_so(f"{d['missing_pixels']} pixels filled, {n} times: {d['overview']}"), json)


@app.command(epilog='Example: anyorder restore corpus.ao "damaged te_t" --draws 3')
def restore(
    model: ModelFile,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="With _ for every missing character; or a .txt file; - is standard input."),
    ],
    draws: Annotated[int, typer.Option(min=0, help="So many fillings of all gaps, drawn together.")] = 0,
    gap: Annotated[str, typer.Option(help="The mark of a missing character.")] = "_",
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Fill the gaps of a text: the likeliest filling, and alternatives with their probabilities."""
    from . import printing, texts

    document = texts.restore(load(model, "restore", seed), texts.text_in(text), draws, gap)
    printing.tell(document, texts.show_restored, json)


@app.command(epilog="Example: anyorder proofread corpus.ao letter.txt")
def proofread(
    model: ModelFile,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A .txt file, or the text itself; - is standard input.")],
    top: Annotated[int, typer.Option(min=1, help="How many characters.")] = 12,
    json: AsJson = False,
) -> None:
    """The characters of a text that fit worst with all others, and what would be expected in their place."""
    from . import printing, texts

    document = texts.proofread(load(model, "anomalies"), texts.text_in(text), top)
    printing.tell(document, texts.show_proofread, json)


ArchiveFile = Annotated[Path, typer.Argument(metavar="ARCHIVE", help="From `anyorder compress`.", show_default=False)]
WithModel = Annotated[
    Path | None,
    typer.Option("--model", help="The model it was made with, if not inside or shipped.", show_default=False),
]


@app.command(epilog="Example: anyorder compress mnist images/ -o images.aoz")
def compress(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] PATH", help="A model with a codec (or mnist, ...); then a table or images.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="The archive; images.aoz for images/, people.csv.aoz for people.csv.", show_default=False
        ),
    ] = None,
    per_block: Annotated[
        int | None, typer.Option(min=1, help="Images (256) or rows (131072) that share a stream.", show_default=False)
    ] = None,
    verify: Annotated[bool, typer.Option(help="Decode everything at once and compare.")] = True,
    effort: Annotated[float, typer.Option(min=0.01, help="How long to learn a model, if none is named.")] = 1.0,
    workers: Workers = None,
    shard: ShardOption = None,
    engine: EngineOption = None,
    json: AsJson = False,
) -> None:
    """Put a table, a folder of images, or a .npy array of them into one small archive; every bit comes back.

    Without a model one is learned from the data and kept in the archive, if that makes it smaller.
    """
    if len(paths) > 2:
        raise InputError(f"Expected a model and what to compress, or that alone; got {len(paths)} names.")
    *models, path = paths
    from . import batches

    spread = batches.Spread(workers, shard, engine)
    if spread.said or is_pattern(path) or (path.is_file() and output is not None and output.is_dir()):
        if not models:
            raise InputError("Many files are compressed with one model: name it first, as in anyorder compress people.ao ...")
        batches.answer("compress", models[0], path, output, spread, json, 0, {"--per-block": per_block}, verify=verify)
        return
    named = path if path.name not in ("", "..") else path.resolve()
    place = output or named.with_name(named.name.removesuffix(".npy") + ".aoz")
    check_place(place, *paths)
    if path.is_dir() and place.resolve().is_relative_to(path.resolve()):
        raise InputError(f"{str(place)!r} lies in the folder that is compressed. Name another place with -o.")
    from . import archiving, printing

    document = archiving.compress_path(
        path, place, models[0] if models else None, effort, archiving.WrittenArchive(per_block, verify)
    )
    printing.tell(document, printing.show_archive, json)


@app.command(epilog="Example: anyorder decompress images.aoz -o images/")
def decompress(
    archive: ArchiveFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="A table, a new folder, or a .npy file.", show_default=False)],
    model: WithModel = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    json: AsJson = False,
) -> None:
    """Give back what is in an archive. What is damaged is named and left out, all else is saved (exit code 1)."""
    from . import archiving, printing

    if output.is_file() and not force:
        raise InputError(f"{str(output)!r} is there already: name another file, or replace it with --force.")
    document = archiving.decompress_path(archive, output, model)
    printing.tell(document, lambda d: printing.say_so(f"{printing.counted(d)}: {d['output']}"), json)
    for lost in document["lost"]:
        say(lost)
    if document["lost"]:
        raise typer.Exit(1)


@app.command(epilog="Example: anyorder inspect images.aoz")
def inspect(archive: ArchiveFile, model: WithModel = None, json: AsJson = False) -> None:
    """Say what is in an archive, how small it is, and whether it is whole."""
    from . import archiving, printing

    printing.tell(archiving.inspect_path(archive, model), printing.show_archive, json)
