"""The verbs that draw: new rows, new images, and what is missing of an image."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .commands import AsJson, ModelFile, Output, Seed, app, check_files, deliver
from .files import check_place
from .loading import load
from .question import parse_evidence

Steps = Annotated[int | None, typer.Option(min=1, help="Network calls per image.", show_default="one per value")]
Temperature = Annotated[float, typer.Option(help="Of images: below 1 they are more usual, above 1 stranger.")]


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
    label: Annotated[
        str | None, typer.Option(help="The class of the images: its number, or the name of its folder.", show_default=False)
    ] = None,
    temperature: Temperature = 1.0,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Draw new rows, given the values of some columns; or new images."""
    if grid is not None:
        from ..data.image import check_lossless
        from . import images, printing

        check_lossless(grid)
        check_place(grid, model)
        if film is not None:
            images.check_film(film, steps, temperature)
            check_place(film, model, grid)
        document = images.sample(load(model, seed, images=True), n, images.Drawn(steps, label, temperature), grid, film)
        printing.tell(document, lambda d: printing.say_so(f"{n} images: {d['file']}" + (f", {d['film']}" if film else "")), json)
        return
    if steps is not None or label is not None or film is not None or temperature != 1.0:
        raise InputError("--steps, --label, --film and --temperature are for images, drawn into a file: --grid new.png.")
    parts = parse_evidence(given or [])
    check_files(output, model)
    from . import tables

    face = load(model, seed)
    drawn, about = tables.sample(face, n, parts)
    deliver(face, drawn, about, output, json)


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
    temperature: Temperature = 1.0,
    output: Annotated[Path, typer.Option("-o", "--output", help="All side by side; and a file each, named after it.")] = Path(
        "inpainted.png"
    ),
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Fill what is missing of an image, several times; no known pixel is touched."""
    from ..data.image import check_lossless
    from . import images, printing

    check_lossless(output)
    check_place(output, photo, model, *([mask] if mask else []))

    drawn = images.Drawn(steps, None, temperature)
    document = images.inpaint(load(model, seed, images=True), photo, images.Missing(mask, box, half), n, drawn, output)
    printing.tell(document, lambda d: printing.say_so(f"{d['missing_pixels']} pixels filled, {n} times: {d['overview']}"), json)
