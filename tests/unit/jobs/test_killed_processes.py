"""Parts of killed processes, made of their journals."""

import errno
import gc
import os
import socket
import time

import numpy as np
import pytest

from epprof_nb import host, load
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.core.options import Options
from epprof_nb.files.dataset.part import write_part
from epprof_nb.jobs import killed_processes
from epprof_nb.jobs.killed_processes import complete_killed
from epprof_nb.recording.children.journal import BEGUN, JOURNAL, Journal
from epprof_nb.recording.children.proc_filesystem import boot_id
from epprof_nb.recording.session import session
from tests.helpers.jobs import add_part, manifest
from tests.helpers.parts import read_part


@pytest.fixture
def part(tmp_path):
    """A part with the journal of a process on another machine."""
    opened = session.start(Options(samples=False))
    stated = manifest(pid=2**22 + 1, hostname="elsewhere").to_json().decode()
    journal = Journal(tmp_path / JOURNAL, opened, {"manifest": stated, "start_ticks": 5})
    x = host.to_device(np.ones(8, np.float32))
    host.launch(np.add, x, x, x, name="killed")
    host.synchronize()
    journal._write(opened.so_far())
    journal.end()
    opened.abort()
    return tmp_path


def test_a_journal_that_another_machine_still_writes_remains(part):
    assert not complete_killed(part)
    assert [path.name for path in part.iterdir()] == [JOURNAL]


@pytest.fixture
def begun(tmp_path):
    """A part of a process that has been killed before it had written its journal."""

    def begun(**fields):
        opened = session.start(Options(samples=False))
        stated = manifest(**{"pid": 2**22 + 1, **fields}).to_json().decode()
        journal = Journal(tmp_path / JOURNAL, opened, {"manifest": stated, "start_ticks": 5})
        journal.start()
        journal.end()
        opened.abort()
        assert [path.name for path in tmp_path.iterdir()] == [BEGUN]
        return tmp_path

    return begun


def test_a_process_that_was_killed_before_its_journal_is_listed_with_its_command(begun):
    here = {"hostname": socket.gethostname(), "clock": {"boot_id": boot_id()}}
    part = begun(**here)
    assert complete_killed(part)
    assert not (part / BEGUN).exists()
    data, stated = read_part(part)
    assert stated.command == ("python", "train.py")
    assert (stated.state, len(data.tables["ops"])) == ("not recorded", 0)
    assert stated.reason.startswith("it crashed or was killed")


def test_a_process_of_another_machine_may_run_for_a_minute(begun):
    part = begun(hostname="elsewhere")
    assert not complete_killed(part)
    before = time.time() - 3600
    os.utime(part / BEGUN, (before, before))
    assert complete_killed(part)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"manifest": 1}', "[" * 100_000])
def test_a_damaged_begin_is_named(tmp_path, text):
    (tmp_path / BEGUN).write_text(text)
    with pytest.raises(ProfileFileError, match=f"{BEGUN} could not be read"):
        complete_killed(tmp_path)


@pytest.mark.parametrize("size", [0, 400])
def test_a_process_that_was_killed_as_it_began_its_journal_is_listed(begun, part, size):
    content = (part / JOURNAL).read_bytes()
    (part / JOURNAL).unlink()
    folder = begun(hostname=socket.gethostname(), clock={"boot_id": boot_id()})
    (folder / JOURNAL).write_bytes(content[:size])
    assert complete_killed(folder)
    assert not (folder / JOURNAL).exists()
    assert read_part(folder)[1].state == "not recorded"


END_OF_STREAM = b"\xff\xff\xff\xff" + bytes(4)


@pytest.mark.parametrize("content", [b"", b"x", END_OF_STREAM, bytes(1_000)])
def test_a_job_with_a_damaged_journal_loads_and_names_it(tmp_path, content):
    add_part(tmp_path, 0)
    folder = tmp_path / manifest(1).folder_name
    folder.mkdir()
    (folder / JOURNAL).write_bytes(content)
    ranks = load(tmp_path).ranks
    assert ranks["state"].tolist() == ["complete", "damaged"]
    assert f"{JOURNAL} is damaged" in ranks.loc[1, "reason"]


def test_a_journal_in_a_folder_that_is_read_only_is_read(part, monkeypatch):
    folder = part / manifest(1).folder_name
    folder.mkdir()
    (part / JOURNAL).rename(folder / JOURNAL)
    os.utime(folder / JOURNAL, (1, 1))

    def write(data, target, stated):
        if part in target.parents:
            raise OSError(errno.EROFS, "Read-only file system")
        return write_part(data, target, stated)

    monkeypatch.setattr(killed_processes, "write_part", write)
    job = load(part)
    assert job.ranks["state"].tolist() == ["killed"]
    assert "killed" in job[0].activities["name"].tolist()
    assert [path.name for path in folder.iterdir()] == [JOURNAL]
    copy = job.processes[0].part
    assert copy.exists()
    del job
    gc.collect()
    assert not copy.exists()


def test_a_journal_of_another_machine_becomes_a_part_when_it_rests(part):
    before = time.time() - 3600
    os.utime(part / JOURNAL, (before, before))
    assert complete_killed(part)
    data, stated = read_part(part)
    assert stated.state == "killed"
    assert "killed" in data.activities["name"].tolist()
