"""Writing a file keeps the attributes of the old one, and replaces it completely or not at all."""

import errno
import os
import re
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from epprof_nb.files.atomic_file import replacing


def write(path, data=b"new"):
    with replacing(path) as file:
        file.write(data)


def test_a_symbolic_link_keeps_pointing_at_its_target(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_link_to_nothing_creates_its_target(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    write(link)
    assert (tmp_path / "target").read_bytes() == b"new"


def test_the_mode_of_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == b"new"


def test_a_fifo_receives_the_bytes_and_stays_a_fifo(tmp_path):
    path, received = tmp_path / "fifo", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join(120)
    assert received == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_stays_a_device():
    before = Path(os.devnull).stat().st_mode
    write(os.devnull)
    assert Path(os.devnull).stat().st_mode == before


def test_a_name_of_245_bytes_can_be_written(tmp_path):
    path = tmp_path / ("n" * 245)
    write(path)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(("number", "next_step"), [
    (errno.ENOSPC, "free space there"),
    (errno.EACCES, "allow writing into that folder, or save elsewhere"),
    (errno.EROFS, "save elsewhere: this file system is read-only"),
    (errno.EIO, "check the disk, or save elsewhere"),
])  # fmt: skip
def test_the_next_step_fits_the_error(tmp_path, monkeypatch, number, next_step):
    def fail(*_args, **_more):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=re.escape(f"({os.strerror(number)}); {next_step}")):
        write(tmp_path / "report.html")


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_no_draft(tmp_path, error):
    path = tmp_path / "report.html"
    path.write_bytes(b"old")

    def fail():
        with replacing(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)) as raised:
        fail()
    if isinstance(error, OSError):
        assert str(raised.value) == (
            f"{path} was not written (No space left); free space there, or save elsewhere"
        )
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_the_draft_of_a_killed_process_is_removed_by_the_next_write(tmp_path):
    code = (
        "import os, sys; from epprof_nb.files.atomic_file import replacing\n"
        "with replacing(sys.argv[1]) as file: file.write(b'half'); file.flush(); os._exit(9)"
    )
    path = tmp_path / "run.epprof"
    subprocess.run([sys.executable, "-c", code, path], check=False)
    (draft,) = tmp_path.iterdir()
    hour_ago = time.time() - 3600
    os.utime(draft, (hour_ago, hour_ago))
    write(path)
    assert [p.name for p in tmp_path.iterdir()] == ["run.epprof"]


def test_the_draft_of_another_writer_at_work_is_left_alone(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    with replacing(first) as file:
        (draft,) = tmp_path.iterdir()
        os.utime(draft, (0, 0))
        write(second)
        file.write(b"new")
    assert first.read_bytes() == second.read_bytes() == b"new"


@pytest.mark.parametrize("method", ["save", "to_html", "to_chrome", "to_speedscope", "to_perfetto"])
def test_bad_paths_are_explained(method, tmp_path):
    from epprof_nb.profiles import Profile

    with pytest.raises(ValueError, match="path is empty"):
        getattr(Profile(), method)("")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        getattr(Profile(), method)(tmp_path)
    nowhere = tmp_path / "a" / "b"
    with pytest.raises(FileNotFoundError, match=f"^folder {nowhere} does not exist; create it, or"):
        getattr(Profile(), method)(nowhere / "file")


def test_a_failed_report_keeps_the_old_one(tmp_path, monkeypatch):
    from epprof_nb.profiles import Profile
    from epprof_nb.views import view

    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(view, "write_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Profile().to_html(path)
    assert path.read_text() == "old"
