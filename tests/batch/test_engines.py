"""Real engines on this machine: a Ray cluster of two workers and a Spark session give the bits of one process."""

import shutil

import pytest

from anyorder.batch import Here, Worker, engine_named, run
from anyorder.errors import InputError


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["ray", "spark"])
def test_engines_change_no_bit(name, model, inputs, tmp_path):
    pytest.importorskip("ray" if name == "ray" else "pyspark", reason=f"{name} is not installed: pip install 'anyorder[{name}]'")
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not on this machine")
    for verb, options in (("impute", {"draws": 2}), ("score", {})):
        for engine, place in ((Here(), "one"), (engine_named(name, 2), name)):
            done = run(Worker(model, verb, **options), inputs, tmp_path / place / verb, engine)
            assert (done.files, done.failed) == (5, [])
    for file in sorted((tmp_path / "one").rglob("*.parquet")):
        assert file.read_bytes() == (tmp_path / name / file.relative_to(tmp_path / "one")).read_bytes()


def test_an_engine_that_there_is_not():
    with pytest.raises(InputError, match="expected one of processes, ray, spark"):
        engine_named("dask", 2)
