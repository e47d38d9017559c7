"""The picture of docs/design.md, drawn from the imports: arrows point down only, and the rooms stay small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "anyorder"

# Who may know whom, from the ground up.
MAY_KNOW = {
    "errors": set(),
    "files": {"errors"},
    "drawing": set(),
    "markup": {"drawing"},
    "plots": {"drawing", "errors"},
    "shipped": {"errors"},
    "coding": {"errors"},
    "curve": set(),
    "sample_weights": {"errors"},
    "schema": {"errors"},
    "subsets": {"schema", "errors"},
    "heads": {"curve", "schema", "errors"},
    "networks": {"schema", "errors"},
    "conditionals": {"heads", "schema", "errors"},
    "model": {"conditionals", "networks", "heads", "schema", "errors"},
    "memory": {"conditionals", "heads", "schema", "errors"},
    "trees": set(),
    "boosting": {"trees", "memory", "conditionals", "heads", "schema", "errors"},
    "recurring": {"heads", "schema"},
    "row_index": {"recurring", "conditionals", "heads", "schema"},
    "blend": {"recurring", "boosting", "memory", "model", "conditionals", "heads", "schema", "errors"},
    "counts": {"blend", "row_index", "recurring", "conditionals", "heads", "schema", "errors"},
    "pair_counts": {"counts", "blend", "row_index", "conditionals", "schema", "errors"},
    "trained": {"pair_counts", "counts", "blend", "boosting", "memory", "model"},
    "training": {
        "files",
        "trained",
        "pair_counts",
        "counts",
        "recurring",
        "blend",
        "boosting",
        "trees",
        "memory",
        "model",
        "conditionals",
        "networks",
        "heads",
        "subsets",
        "schema",
        "errors",
    },
    "inference": {"model", "conditionals", "heads", "subsets", "schema", "errors"},
    "data": {"curve", "files", "schema", "errors"},
    "pooling": {"errors"},
    "arguments": {"data", "subsets", "schema", "errors"},
    "evidence": {"counts", "row_index", "data", "inference", "model", "heads", "schema", "errors"},
    "answers": {"evidence", "arguments", "data", "heads", "schema", "plots", "markup", "drawing", "errors"},
    "anomalies": {"counts", "data", "model", "heads", "schema", "plots", "markup", "drawing"},
    "reporting": {"anomalies", "counts", "data", "files", "model", "heads", "schema", "markup", "drawing", "errors"},
    "measuring": {"arguments", "data", "inference", "model", "schema", "plots", "markup", "drawing", "errors"},
    "tables": {
        "training",
        "trained",
        "pair_counts",
        "counts",
        "recurring",
        "blend",
        "boosting",
        "memory",
        "model",
        "heads",
        "schema",
    },
    "images": {
        "arguments",
        "training",
        "inference",
        "data",
        "trained",
        "model",
        "networks",
        "heads",
        "subsets",
        "schema",
        "errors",
    },
    "codecs": {
        "coding",
        "conditionals",
        "data",
        "training",
        "inference",
        "model",
        "networks",
        "heads",
        "subsets",
        "schema",
        "files",
        "errors",
    },
    "compression": {"codecs", "coding", "images", "schema", "errors"},
    "rivals": {"conditionals", "networks", "heads", "subsets", "schema", "errors"},
    "estimator": {
        "arguments",
        "compression",
        "sample_weights",
        "shipped",
        "images",
        "anomalies",
        "answers",
        "evidence",
        "reporting",
        "measuring",
        "markup",
        "drawing",
        "tables",
        "data",
        "training",
        "inference",
        "trained",
        "heads",
        "subsets",
        "schema",
        "errors",
    },
    "cli": {
        "arguments",
        "codecs",
        "coding",
        "files",
        "shipped",
        "drawing",
        "answers",
        "anomalies",
        "reporting",
        "estimator",
        "images",
        "measuring",
        "inference",
        "subsets",
        "training",
        "data",
        "errors",
    },
    "__main__": {"cli"},
}


def files():
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def known_rooms(path):
    """The rooms a file imports from, by its relative imports."""
    depth = len(path.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level < depth:
                continue  # inside the same room
            yield from [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            assert not any(name.startswith("anyorder") for name in names), f"{path.name}: import relatively"


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_point_down_only(path):
    room = room_of(path)
    assert set(known_rooms(path)) - {room} <= MAY_KNOW[room]


def test_the_picture_has_no_cycle():
    """Rooms are listed from the ground up: each knows only rooms above it in the list."""
    rooms = list(MAY_KNOW)
    for place, room in enumerate(rooms):
        assert MAY_KNOW[room] <= set(rooms[:place])
    assert {room_of(path) for path in files()} == set(rooms)


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_nothing_is_unpickled():
    for path in files():
        assert "pickle" not in path.read_text().replace("No pickle", "").replace("no pickle", ""), path
        assert "torch.load" not in path.read_text(), path
