"""`anyorder studio`: the library in a browser."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from .commands import app
from .printing import say


@app.command(epilog="Example: anyorder studio people.ao")
def studio(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="A model to begin with, or a shipped one: mnist.", show_default=False)
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where trained models are saved, and found again.")] = Path("anyorder-models"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="If it is taken, a free one.")] = 8765,
    host: Annotated[str, typer.Option(help="This machine only; another address opens the studio to others.")] = "127.0.0.1",
    max_upload: Annotated[float, typer.Option(min=1, help="Megabytes that may be dropped on the page at once.")] = 512,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open the studio: a page in the browser to load tables and images, train, and ask. Nothing leaves this machine."""
    serve, Workspace = needed()
    space = Workspace(folder)
    address = "/" if model is None else f"/open?model={begin_with(space, model)}"

    def opened(link: str) -> None:
        say(f"The studio is open at {link}\nCtrl-C ends it. Trained models are saved in {str(folder)!r}.")
        if browser:
            import webbrowser

            webbrowser.open(link)

    serve(space, host, port, int(max_upload * 2**20), opened, address)


def needed() -> tuple[Any, Any]:
    """What serves, if it is installed."""
    try:
        import python_multipart  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(f"The studio needs {error.name}, which is not installed: pip install 'anyorder[studio]'.") from error
    from ..studio.server import serve
    from ..studio.workspace import Workspace

    return serve, Workspace


def begin_with(space: Any, model: str) -> str:
    """The id of the model, open."""
    from ..estimator import AnyOrder

    opened: str = space.add_model(Path(model).name, AnyOrder.load(model)).id
    return opened
