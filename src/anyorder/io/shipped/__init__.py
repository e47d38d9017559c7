"""Models that come with the package, to be named instead of a file: trained by recipes/train.py."""

from pathlib import Path

from ...errors import InputError

HERE = Path(__file__).parent


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.ao"))


def model_file(path: str | Path) -> Path:
    """The file itself, or the one that comes with the package under this name."""
    path = Path(path)
    if path.is_file() or path.suffix:
        return path
    if str(path) not in names():
        raise InputError(
            f"There is no file {str(path)!r}, and no model of that name comes with the package: {', '.join(names())}."
        )
    return shipped_file(str(path))


def shipped_file(name: str) -> Path:
    return HERE / f"{name}.ao"
