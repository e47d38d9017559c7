"""The README's snippets run, one after the other, and its commands exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_python_snippets_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert snippets
    names = {}
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), names)


def test_snippets_about_displays_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "displays.md").read_text(), flags=re.DOTALL):
        exec(compile(snippet, "displays.md", "exec"), names)
    assert (tmp_path / "report.html").exists()


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make (\w+)`", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_every_linked_file_exists():
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / link).exists(), (document.name, link)
