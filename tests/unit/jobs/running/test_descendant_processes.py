"""Descendants of this process, and why they do not listen."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from epprof_nb.jobs.running import descendant_processes
from epprof_nb.jobs.running.descendant_processes import (
    descendants,
    read_process,
    seconds_since_start,
    why_silent,
)
from epprof_nb.recording.children.proc_filesystem import children_of

WAIT = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def started():
    running = []

    def start(*command, **options):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.communicate()


def read_started(pid):
    """Read a process, which has no command for a moment after it executed its program."""
    while (found := read_process(pid)) is None:
        time.sleep(0.001)
    return found


@pytest.mark.parametrize("lists_children", [True, False])
def test_descendants_of_descendants_are_found_and_ended_ones_are_not(
    started, lists_children, monkeypatch
):
    if not lists_children:
        monkeypatch.setattr(descendant_processes, "children_of", lambda pid: None)
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WAIT!r}])"
    child = started(sys.executable, "-c", inner)
    child.stdout.readline()
    ended = started(sys.executable, "-c", "")
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    found = {process.pid: process for process in descendants(os.getpid())}
    assert child.pid in found
    assert ended.pid not in found
    (grandchild,) = (process for process in found.values() if process.parent == child.pid)
    assert grandchild.command[-1] == WAIT
    assert [process.pid for process in descendants(child.pid)] == [grandchild.pid]


def test_a_thread_may_have_started_a_process(started):
    with ThreadPoolExecutor(1) as pool:
        process = pool.submit(started, sys.executable, "-c", WAIT).result()
        process.stdout.readline()
        assert process.pid in children_of(os.getpid())
    assert process.pid in children_of(os.getpid())
    assert children_of(2**22) == set()


def test_names_that_look_like_the_end_of_a_name(started, tmp_path):
    link = tmp_path / "a) R 1 (b"
    link.symlink_to("/bin/cat")
    process = started(str(link))
    found = read_started(process.pid)
    assert (found.parent, found.command) == (os.getpid(), (str(link),))


def test_reasons(started):
    before = seconds_since_start()
    python = started(sys.executable, "-c", WAIT)
    python.stdout.readline()
    cat = read_started(started("/bin/cat").pid)
    found = read_process(python.pid)
    assert why_silent(cat, since_s=before) == "not Python"
    assert why_silent(found, since_s=seconds_since_start() + 1) == "started before"
    assert why_silent(found, since_s=before - 1) == "no GPU library"


def test_a_driver_in_the_memory_of_a_process_that_does_not_listen(started, tmp_path):
    library = tmp_path / "libcuda.so.1"
    library.write_bytes(b"\0" * 4096)
    mapped = "import mmap, sys; f = open(sys.argv[1]); m = mmap.mmap(f.fileno(), 0, prot=1)"
    process = started(sys.executable, "-c", f"{mapped}; {WAIT}", str(library))
    process.stdout.readline()
    assert "does not listen" in why_silent(read_process(process.pid), since_s=0.0)
