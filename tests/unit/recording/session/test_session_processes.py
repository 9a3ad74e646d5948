"""Sessions in processes that fork, start others, or end."""

import multiprocessing
import os
import subprocess
import sys

import pytest

import epprof_nb
from epprof_nb.core.errors import CaptureError
from epprof_nb.recording.recorder import Recorder, RecorderOutput
from epprof_nb.recording.session import session
from tests.helpers.session_work import kernels, work

pytestmark = pytest.mark.usefixtures("nothing_leaks")


def _child(queue):
    try:
        with epprof_nb.profile() as prof, epprof_nb.op("child"):
            work("child")
        queue.put((kernels(prof), prof.ops["name"].tolist()))
    except BaseException as error:
        queue.put(repr(error))


def test_a_forked_child_profiles_itself_and_disturbs_nothing():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with epprof_nb.profile() as prof, epprof_nb.op("parent"):
        work("parent")
        process = context.Process(target=_child, args=(queue,))
        process.start()
        assert queue.get() == (["child"], ["child"])
        process.join(120)
        work("parent")
    assert process.exitcode == 0
    assert kernels(prof) == ["parent", "parent"]


def test_a_session_of_the_parent_cannot_be_stopped_in_a_forked_child():
    one = session.start()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            one.stop()
            os.write(write, b"stopped")
        except CaptureError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 20) == b"refused"
    os.close(read)
    os.close(write)
    one.stop()


def test_a_subprocess_in_a_profile_is_left_alone():
    with epprof_nb.profile() as prof:
        out = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True)
        work("k")
    assert out.stdout == b"1\n"
    assert kernels(prof) == ["k"]


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, epprof_nb;"
        "print([m for m in ('pandas', 'numpy', 'IPython', 'matplotlib') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "import os; os._exit(3)"])
def test_a_session_left_open_lets_the_process_end(ending):
    code = f"""
import epprof_nb
from epprof_nb import host
from epprof_nb.recording.recorder import Recorder, RecorderOutput
from epprof_nb.recording.session import session
left = session.start()
with epprof_nb.op("open"):
    host.launch(lambda a: a.fill(1), host.empty((16,)))
epprof_nb.op("never closed").__enter__()
{ending}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == (3 if ending else 0), done.stderr
    assert done.stderr == ""


class Forked(Recorder):
    """Records which calls it gets around a fork."""

    name = "forked"

    def __init__(self):
        self.calls = []

    def start(self, options):
        return []

    def drain(self, *, waited=True):
        return RecorderOutput()

    def stop(self):
        pass

    def before_fork(self):
        self.calls.append("before")

    def after_fork_in_parent(self):
        self.calls.append("after")


def test_recorders_prepare_for_forks_and_continue_in_the_parent(monkeypatch):
    recorder = Forked()
    monkeypatch.setattr("epprof_nb.recording.session.service._recorders", lambda: (recorder,))
    opened = session.start()
    child = os.fork()
    if child == 0:
        os._exit(0 if recorder.calls == ["before"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert recorder.calls == ["before", "after"]
    opened.abort()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert recorder.calls == ["before", "after", "before"]  # what an earlier session has started
