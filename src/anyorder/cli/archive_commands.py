"""The verbs for archives: compress, decompress, inspect."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .commands import AsJson, app
from .faults import say
from .files import check_place

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
    json: AsJson = False,
) -> None:
    """Put a table, a folder of images, or a .npy array of them into one small archive; every bit comes back.

    Without a model one is learned from the data and kept in the archive, if that makes it smaller.
    """
    if len(paths) > 2:
        raise InputError(f"Expected a model and what to compress, or that alone; got {len(paths)} names.")
    *models, path = paths
    named = path if path.name not in ("", "..") else path.resolve()
    place = output or named.with_name(named.name.removesuffix(".npy") + ".aoz")
    check_place(place, *paths)
    if path.is_dir() and place.resolve().is_relative_to(path.resolve()):
        raise InputError(f"{str(place)!r} lies in the folder that is compressed. Name another place with -o.")
    from . import archives, printing

    document = archives.compress_path(path, place, models[0] if models else None, effort, archives.Written(per_block, verify))
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
    from . import archives, printing

    if output.is_file() and not force:
        raise InputError(f"{str(output)!r} is there already: name another file, or replace it with --force.")
    document = archives.decompress_path(archive, output, model)
    printing.tell(document, lambda d: printing.say_so(f"{printing.counted(d)}: {d['output']}"), json)
    for lost in document["lost"]:
        say(lost)
    if document["lost"]:
        raise typer.Exit(1)


@app.command(epilog="Example: anyorder inspect images.aoz")
def inspect(archive: ArchiveFile, model: WithModel = None, json: AsJson = False) -> None:
    """Say what is in an archive, how small it is, and whether it is whole."""
    from . import archives, printing

    printing.tell(archives.inspect_path(archive, model), printing.show_archive, json)
