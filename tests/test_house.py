"""The picture of docs/design.md, drawn from the imports: arrows point down only, and the rooms stay small."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "anyorder"

# From the roof to the ground: a room knows rooms below its own line, and of its own line only itself.
LAYERS = """
__main__
cli
studio batch
estimator
modalities
archives
training inference baselines
models
networks subsets
distributions
schema
validation io coding
errors
"""
LAYER = {room: depth for depth, line in enumerate(reversed(LAYERS.split("\n"))) for room in line.split()}


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
            names = [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
            yield from (name for name in names if name != "__version__")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            assert not any(name.startswith("anyorder") for name in names), f"{path.name}: import relatively"


def test_nobody_looks_up():
    for path in files():
        above = {room for room in known_rooms(path) if LAYER[room] >= LAYER[room_of(path)]} - {room_of(path)}
        assert not above, f"{path.relative_to(ROOT)} imports from {above}"


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_nothing_is_unpickled():
    for path in files():
        assert "pickle" not in path.read_text().replace("No pickle", "").replace("no pickle", ""), path
        assert "torch.load" not in path.read_text(), path


def test_the_lowest_versions_that_are_declared_are_those_that_are_tested():
    """`make test-all` runs with constraints-lowest.txt: a range that begins below would be a claim that nobody checked."""
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    lines = (ROOT.parents[1] / "constraints-lowest.txt").read_text().splitlines()
    tested = {line.split("==")[0]: line.split("==")[1] for line in lines if "==" in line}
    extras = project["optional-dependencies"]
    for needed in [*project["dependencies"], *extras["plot"], *extras["excel"], *extras["test"]]:
        if not needed.startswith("anyorder"):
            name, least = re.fullmatch(r"([\w.-]+)>=([\d.]+)(?:,<[\d.]+)?", needed).groups()
            assert f"{tested[name]}.".startswith(f"{least}."), f"{needed}: tested is {tested[name]}"
            assert set(tested[name].removeprefix(least)) <= set(".0"), f"{needed}: tested is {tested[name]}"


FILES = r"\.write_(?:bytes|text)\(|open\([^)\n]*[\"'](?:[wax]b?)[\"']|\bnp\.save\(|\.savefig\(|os\.(?:replace|rename)\("
TEXTS = r"(?<!_)\bprint\(|sys\.std(?:out|err)\.write"
WRITERS = {
    "io/atomic.py": "the one place where files are written",
    "io/datasets.py": "downloads go on where they were broken off, and are checked",
    "modalities/images/modality.py": "inside write_whole",
    "cli/archiving.py": "inside write_whole",
    "cli/printing.py": "the one place where untrusted text is printed",
    "cli/commands.py": "the version",
    "cli/texts.py": "inside write_whole",
    "batch/runner.py": "inside write_whole",
    "studio/uploads.py": "into a temporary folder of its own",
    "training/progress.py": "numbers of ours",
    "modalities/displays.py": "a doctest",
}


def test_files_are_written_and_texts_are_printed_in_one_place():
    """A new place that writes a file, or prints, must go through io/atomic.py and cli/printing.py, or say why not."""
    found = {str(path.relative_to(ROOT)) for path in files() if re.search(f"{FILES}|{TEXTS}", path.read_text())}
    assert found == set(WRITERS)
