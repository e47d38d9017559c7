"""Archives are the same bytes on any machine: batch sizes, threads, kernels, instruction sets."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anyorder.archives import ArchiveModel, compress, save_codec
from anyorder.modalities.images.image_archives import ArraySource
from anyorder.modalities.tables.codec.table_archives import csv_source
from anyorder.modalities.tables.codec.table_codec import fit_table_codec
from some_codecs import some_codec, some_frame, some_images

SCRIPT = Path(__file__).with_name("settings_matrix.py")
SETTINGS = {
    "as it comes": {},
    "no vector instructions": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Codecs, images, a table and archives of them; blocks are no multiple of any batch."""
    home = tmp_path_factory.mktemp("settings")
    for name, count in (("grey", 80), ("colours", 9)):
        save_codec(some_codec(name), home / f"{name}.codec")
        np.save(home / f"{name}.npy", some_images(name, count))
        (home / f"{name}.aoz").write_bytes(archived(some_codec(name), ArraySource(some_images(name, count)), per_block=70))
    content = some_frame(48).to_csv(index=False).encode()
    source = csv_source(content)
    save_codec(codec := fit_table_codec(source.names, source.texts, effort=20 / 1500), home / "table.codec")
    (home / "table.csv").write_bytes(content)
    (home / "table.aoz").write_bytes(archived(codec, source))
    return home


def archived(codec, source, per_block=None):
    file = io.BytesIO()
    compress(ArchiveModel(codec), source, file, per_block)
    return file.getvalue()


def run(home, how, *more):
    command = [sys.executable, str(SCRIPT), str(home), *more]
    return subprocess.run(command, env=os.environ | how, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["as it comes", *(pytest.param(name, marks=pytest.mark.slow) for name in [*SETTINGS][1:])])
def test_archives_do_not_depend_on_the_machine(home, name):
    result = run(home, SETTINGS[name])
    assert result.returncode == 0, result.stderr[-2000:]


@pytest.mark.slow
def test_archives_do_not_depend_on_compilation(home):
    result = run(home, {}, "compile")
    if "CppCompileError" in result.stderr or "InvalidCxxCompiler" in result.stderr or "No working C++ compiler" in result.stderr:
        pytest.skip("no compiler here")
    assert result.returncode == 0, result.stderr[-2000:]
