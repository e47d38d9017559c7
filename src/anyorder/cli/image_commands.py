"""The verbs for images alone."""

from pathlib import Path
from typing import Annotated

import typer

from .commands import AsJson, ModelFile, Seed, Steps, app
from .files import check_place
from .loading import load


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

    document = images.inpaint(load(model, seed, images=True), photo, images.Missing(mask, box, half), n, steps, output)
    printing.tell(document, lambda d: print(f"{d['missing_pixels']} pixels filled, {n} times: {d['overview']}"), json)
