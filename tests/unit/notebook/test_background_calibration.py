"""The background calibration runs once, is suspended by profiles, and ends."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import epprof_nb
from epprof_nb.files.measured_spreads import save_spread
from epprof_nb.jobs.running.descendant_processes import descendants
from epprof_nb.notebook import background_calibration
from epprof_nb.notebook.background_process import BackgroundProcess
from epprof_nb.notebook.baseline import Baseline
from epprof_nb.notebook.settings import GpuProfile
from epprof_nb.recording.children.order_to_children import VARIABLE
from epprof_nb.recording.children.proc_filesystem import has_variable
from epprof_nb.recording.children.replaced_environments import StartedProcesses
from epprof_nb.recording.session.service import service
from epprof_nb.util.machine_id import machine_id
from tests.helpers.repeated import TIMES, repeated

SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")
HOST = [{"device_id": 0, "name": "host device", "kind": "host"}]


@pytest.fixture
def calibration():
    made = BackgroundProcess(SLEEPS, 120)
    yield made
    made.end()
    if made.thread is not None:
        made.thread.join(60)


def has_state(pid, state, attempts=6000):
    """Wait for the state of a process, as in ``ps``."""
    for _ in range(attempts):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        if fields[0] in state:
            return True
        threading.Event().wait(0.01)
    return False


def runs(group):
    """Tell whether a process of a group runs: a zombie that nobody waits for has ended."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[:3]
        except OSError:  # it has just ended
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return False


def test_it_is_suspended_while_a_profile_is_recorded(calibration):
    assert calibration.start()
    assert not calibration.start()
    pid = calibration._process.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == 19
    assert has_state(pid, "RS")
    with epprof_nb.profile():
        assert has_state(pid, "T")
        with epprof_nb.profile():
            pass
        assert has_state(pid, "T")
    assert has_state(pid, "RS")
    calibration.end()
    calibration.thread.join(60)
    assert calibration._process.returncode == -signal.SIGKILL
    assert calibration.suspend not in service.on_recording


def test_it_ends_after_its_time():
    calibration = BackgroundProcess(SLEEPS, seconds=0.01)
    assert calibration.start()
    calibration.thread.join(60)
    assert calibration._process.returncode == -signal.SIGKILL


def test_a_calibration_without_the_lowest_priority_ends_all_the_same(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", refuse)
    calibration = BackgroundProcess(SLEEPS, seconds=0.01)
    assert calibration.start()
    calibration.thread.join(60)
    assert calibration._process.returncode == -signal.SIGKILL


PARENT = """
import os, signal, sys
from epprof_nb.notebook import background_process
from epprof_nb.notebook.background_calibration import CALIBRATION as calibration
# With the lowest priority, a busy machine takes minutes to import what reads the closed pipe.
background_process._LOWEST_PRIORITY = 0
assert calibration.start()
print(calibration._process.pid, flush=True)
sys.stdin.read(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_ends_with_a_process_that_is_killed(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    group = int(parent.stdout.readline())
    parent.communicate(b"x")
    for _ in range(6000):
        if not runs(group):
            return
        threading.Event().wait(0.01)
    pytest.fail("the calibration goes on")


def test_it_belongs_to_no_job(calibration, monkeypatch):
    started, order = StartedProcesses(), "/nowhere/order.json"
    monkeypatch.setenv(VARIABLE, order)
    started.watch(order)
    try:
        assert calibration.start()
    finally:
        started.stop()
    assert started.known == []
    pid = calibration._process.pid
    assert not has_variable(pid, VARIABLE)
    assert pid not in {process.pid for process in descendants(os.getpid())}


def test_a_forked_child_leaves_it_alone(calibration):
    calibration.start()
    child = os.fork()
    if child == 0:
        calibration.end()
        os._exit(0)
    os.waitpid(child, 0)
    assert has_state(calibration._process.pid, "RS")


def test_a_command_that_cannot_start_is_none():
    assert not BackgroundProcess(("/nowhere/python",), 120).start()


def made(seed, **more):
    return repeated(TIMES, seed=seed, **{"machine": machine_id(), "devices": HOST} | more)


@pytest.mark.parametrize(
    ("more", "may_calibrate", "starts"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"devices": [{"device_id": 0, "name": "GPU X", "kind": "gpu"}]}, True, False),
        ({"machine": None}, True, False),
        ({"repeats": 1}, True, False),
    ],
)
def test_the_first_comparison_starts_it_and_says_so(
    monkeypatch, tmp_path, calibration, more, may_calibrate, starts
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(background_calibration, "CALIBRATION", calibration)
    baseline, new = Baseline("old", (made(0, **more),)), made(1, **more)
    result = baseline.compare(new, "new", may_calibrate=may_calibrate)
    assert (calibration.thread is not None) == starts
    assert ("A background process" in repr(result)) == starts
    # Once.
    again = baseline.compare(new, "new", may_calibrate=may_calibrate)
    assert "A background process" not in repr(again)


def test_a_machine_that_was_calibrated_is_not_calibrated_again(monkeypatch, tmp_path, calibration):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(background_calibration, "CALIBRATION", calibration)
    spread = {"total": 0.01, "device": 0.01, "host": 0.01, "recordings": 9, "date": "2026-01-02"}
    save_spread(machine_id(), "host device", spread)
    result = Baseline("old", (made(0),)).compare(made(1), "new", may_calibrate=True)
    assert "measured 9 on 2026-01-02" in result.reason
    assert calibration.thread is None


def test_the_environment_can_prevent_it(monkeypatch):
    monkeypatch.delenv("EPPROF_CALIBRATE")
    assert GpuProfile().calibrate
    monkeypatch.setenv("EPPROF_CALIBRATE", "0")
    assert not GpuProfile().calibrate
