"""Models that come with the package, to be named instead of a file: trained by recipes/train.py."""

from pathlib import Path

HERE = Path(__file__).parent


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.ao"))


def model_file(path: str | Path) -> Path:
    """The file itself, or the one that comes with the package under this name."""
    path = Path(path)
    shipped = HERE / f"{path}.ao"
    return shipped if not path.exists() and str(path) in names() else path
