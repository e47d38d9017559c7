"""Archives are the same bytes on any machine: batch sizes, threads, kernels, instruction sets."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anyorder.codecs import ArraySource, Keeper, compress, csv_source, fit_table_codec, save_codec
from some_codecs import some_codec, some_frame, some_images

SCRIPT = Path(__file__).with_name("settings_matrix.py")
SETTINGS = {
    "as it comes": {},
    "no vector instructions": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A codec, images and the archive of them; blocks are no multiple of any batch."""
    home, images = tmp_path_factory.mktemp("settings"), some_images("grey", 80)
    save_codec(some_codec("grey"), home / "some.codec")
    np.save(home / "images.npy", images)
    file = io.BytesIO()
    compress(Keeper(some_codec("grey")), ArraySource(images), file, per_block=70)
    (home / "images.aoz").write_bytes(file.getvalue())
    content = some_frame(48).to_csv(index=False).encode()
    source, table = csv_source(content), io.BytesIO()
    save_codec(codec := fit_table_codec(source.names, source.texts, effort=20 / 1500), home / "table.codec")
    compress(Keeper(codec), source, table)
    (home / "table.csv").write_bytes(content)
    (home / "table.aoz").write_bytes(table.getvalue())
    return [home / name for name in ("some.codec", "images.npy", "images.aoz", "table.codec", "table.csv", "table.aoz")]


def run(files, how, *more):
    command = [sys.executable, str(SCRIPT), *map(str, files), *more]
    return subprocess.run(command, env=os.environ | how, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", SETTINGS)
def test_archives_do_not_depend_on_the_machine(files, name):
    result = run(files, SETTINGS[name])
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.slow
def test_archives_do_not_depend_on_compilation(files):
    result = run(files, {}, "compile")
    if "CppCompileError" in result.stderr or "InvalidCxxCompiler" in result.stderr or "No working C++ compiler" in result.stderr:
        pytest.skip("no compiler here")
    assert result.returncode == 0, result.stderr[-2000:]
