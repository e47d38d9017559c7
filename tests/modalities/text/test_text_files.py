"""Files and folders of text through `anyorder compress` and `decompress`, by a modality that has nothing but the codec."""

import pytest
from typer.testing import CliRunner

from anyorder.cli import app
from anyorder.errors import FormatError, UnavailableError
from anyorder.modalities.base import MODALITIES, Fitted, Modality, register
from anyorder.modalities.compression import compress, decompress
from anyorder.modalities.text.codec.engine import is_fast
from anyorder.modalities.text.codec.text_archives import reads_text, text_source, unpack_text, unpack_text_to
from anyorder.modalities.text.codec.text_codec import TextCodec, fit_text_codec

needs_numba = pytest.mark.skipif(not is_fast(), reason="priming takes a minute without numba")
PROSE = "The people who lived in the village knew that the river would rise again, as it had in the years before.\n" * 20


class NoTexts(Fitted):
    what = "text"


class OnlyTheCodec(Modality):
    """What the hooks of the codec need of a modality of text."""

    name, what, plural, codec, fitted = "text", "a text", "texts", TextCodec, NoTexts

    def accepts(self, X):
        return isinstance(X, str) or (isinstance(X, list) and bool(X) and isinstance(X[0], str))

    def rebuild(self, model, about, history):
        raise UnavailableError("There is no model of text.")

    def reads(self, path):
        return reads_text(path)

    def source(self, X, verify=True):
        return text_source(X)

    def file_source(self, path):
        return text_source(path)

    def fit_codec(self, X, training):
        return fit_text_codec("\n".join(X).encode())

    def unpack(self, archive):
        return unpack_text(archive)

    def unpack_to(self, archive, name, output, done=None):
        return unpack_text_to(archive, name, output, done)


@pytest.fixture(autouse=True)
def _texts():
    register(modality := OnlyTheCodec())
    yield
    MODALITIES.remove(modality)


def ran(*words):
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@needs_numba
@pytest.mark.parametrize("name", ["book.txt", "notes.md", "data.json", "tool.py", "server.log"])
def test_a_file_is_compressed_and_comes_back(name, tmp_path):
    (tmp_path / name).write_text(PROSE)
    assert "1 part in" in ran("compress", tmp_path / name, "-o", tmp_path / "a.aoz")
    ran("decompress", tmp_path / "a.aoz", "-o", tmp_path / "back")
    assert (tmp_path / "back").read_text() == PROSE


@needs_numba
def test_a_folder_is_compressed_and_comes_back(tmp_path):
    files = {"a.md": PROSE, "b/c.py": "def f(x):\n    return x\n" * 5, "b/d.json": '{"name": "x", "id": 1}', "empty.log": ""}
    for name, text in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    ran("compress", tmp_path / "in", "-o", tmp_path / "a.aoz")
    ran("decompress", tmp_path / "a.aoz", "-o", tmp_path / "out")
    assert {p.relative_to(tmp_path / "out").as_posix(): p.read_text() for p in (tmp_path / "out").rglob("*.*")} == files


@needs_numba
def test_texts_in_memory_come_back_and_damage_is_told():
    texts = [PROSE, "", "Ωmega"]
    archive = compress(texts)
    assert decompress(archive) == texts
    assert decompress(compress(PROSE)) == PROSE
    assert len(archive) < len(PROSE)
    middle = len(archive) // 2
    with pytest.raises(FormatError):
        decompress(archive[:middle] + bytes([archive[middle] ^ 1]) + archive[middle + 1 :])


def test_without_numba_zstd_is_taken_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr("anyorder.modalities.text.codec.text_archives.is_fast", lambda: False)
    with pytest.warns(UserWarning, match=r"pip install \"anyorder\[fast\]\""):
        archive = compress(PROSE)
    assert decompress(archive) == PROSE


def test_what_is_text_is_known_by_its_name(tmp_path):
    for name in ("a/x.txt", "a/y.py", "b/z.png", "c/d/e.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("some text")
    assert [reads_text(tmp_path / name) for name in ("a", "b", "c", "a/x.txt", "b/z.png")] == [True, False, True, True, False]
