"""Files are written whole or not at all, whatever happens, and nothing is left beside them."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anyorder.errors import AnyOrderError, InputError, WriteError
from anyorder.io import atomic
from anyorder.io.atomic import HOST, check_writable, write_bytes, write_whole


@pytest.mark.parametrize("fault", [ValueError("x"), KeyboardInterrupt(), SystemExit(143), MemoryError()], ids=repr)
def test_nothing_is_left_of_what_was_broken_off(tmp_path, fault):
    def broken(beside):
        Path(beside).write_bytes(b"half")
        assert len(list(tmp_path.iterdir())) == 2
        raise fault

    write_bytes(tmp_path / "a", b"old")
    with pytest.raises(type(fault)):
        write_whole(tmp_path / "a", broken)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.fixture
def small_disk():
    """Files of this process may have 4096 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_sentence(tmp_path, small_disk):
    write_bytes(tmp_path / "a", b"old")
    with pytest.raises(WriteError, match=r"^Cannot write '.*/a': File too large\. What was there is untouched\.$"):
        write_bytes(tmp_path / "a", bytes(5000))
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_place_that_cannot_be_is_found_out_before_and_leaves_nothing(tmp_path):
    check_writable(tmp_path / "new")
    assert not list(tmp_path.iterdir())
    for path, why in [
        (tmp_path, "it is a folder. Name a file."),
        (tmp_path / "none" / "x", "No such file or directory"),
        (tmp_path / ("x" * 300), "File name too long"),
        (Path("/proc/x"), "No such file or directory|Permission denied|Operation not permitted"),
    ]:
        with pytest.raises(WriteError, match=why):
            check_writable(path)


def test_what_dead_processes_left_is_swept_and_nothing_else(tmp_path, monkeypatch):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale = [f".anyorder-{HOST}-{dead.pid}-abc_12.part", f".anyorder-{HOST}-{dead.pid}-abc_12.own.part"]
    others = [f".anyorder-{HOST}-{os.getppid()}-abc.part", f".anyorder-00000000-{dead.pid}-abc.part", ".x.part", "a.part"]
    for name in (*stale, *others):
        (tmp_path / name).write_bytes(b"half")
    write_bytes(tmp_path / "new", b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {*others, "new"}
    monkeypatch.setattr(atomic.os, "kill", lambda *_: (_ for _ in ()).throw(PermissionError))
    assert atomic.is_running(1)  # somebody else's process


def test_what_somebody_else_left_does_not_keep_us_from_writing(tmp_path, monkeypatch):
    """In a folder such as /tmp the file of a dead process may belong to another user, who alone may remove it."""
    stale = tmp_path / f".anyorder-{HOST}-{2**22 + 1}-abc.part"
    stale.write_bytes(b"half")
    unlink = Path.unlink

    def only_mine(path, **how):
        if path == stale:
            raise PermissionError(1, "Operation not permitted")
        unlink(path, **how)

    monkeypatch.setattr(Path, "unlink", only_mine)
    write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_write_errors_are_ours_and_the_systems():
    assert issubclass(WriteError, AnyOrderError)
    assert issubclass(WriteError, OSError)
    assert issubclass(WriteError, InputError)


def test_sigterm_leaves_no_file(tmp_path):
    code = """if True:
        import sys, time
        from pathlib import Path
        from anyorder import cli
        from anyorder.io import atomic
        def slowly(beside):
            print("begun", flush=True)
            time.sleep(60)
        cli.app = lambda **_: atomic.write_whole(Path(sys.argv[1]), slowly)
        cli.main()
    """
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout.readline() == b"begun\n"
        assert len(list(tmp_path.iterdir())) == 1
        begun = time.monotonic()
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=30)
    assert (running.returncode, said) == (128 + signal.SIGTERM, b"")
    assert time.monotonic() - begun < 20
    assert not list(tmp_path.iterdir())
