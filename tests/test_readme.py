"""The README and all pages of docs: snippets run, one after the other; links lead somewhere; commands exist."""

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "bench" / "README.md", *PAGES]
MOST_LINES, WIDEST = 150, 120  # of the README


def named(path):
    return str(path.relative_to(ROOT))


def snippets(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if snippets(path)], ids=named)
def test_python_snippets_run(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # advice to whoever reads on
        for snippet in snippets(path):
            exec(compile(snippet, named(path), "exec"), names)


def test_there_are_snippets_where_one_begins():
    assert all(snippets(path) for path in (README, ROOT / "docs" / "index.md", ROOT / "docs" / "engine.md"))


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    for document in DOCUMENTS:
        for target in re.findall(r"`make ([\w-]+)`", document.read_text()):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), (named(document), target)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_linked_file_exists(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (document.parent / link).exists(), link


@pytest.mark.parametrize("document", PAGES, ids=named)
def test_every_linked_heading_exists(document):
    text = document.read_text()
    for link, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        other = (document.parent / link).read_text() if link else text
        headings = re.findall(r"^#+ (.+)$", other, flags=re.MULTILINE)
        assert place in {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}, place


def test_every_page_has_its_place_on_the_site():
    site = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for path in PAGES:
        assert path.relative_to(ROOT / "docs").as_posix() in site, named(path)


def test_the_readme_can_be_read_in_one_sitting():
    lines = README.read_text().splitlines()
    assert len(lines) < MOST_LINES
    assert not [line for line in lines if len(line) > WIDEST]
