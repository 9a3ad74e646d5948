"""Attribution to the cell's thread from its log, without launch callbacks."""

import shutil
import subprocess
import threading
import time

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import API_CALLS, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.cupti.tables import is_wait_of_profiler
from epprof_nb.recording.recorder import CellLog, RecordedCalls, RecorderOutput
from epprof_nb.recording.session.cell_thread_wait import is_awaited_by_cell
from epprof_nb.recording.session.cell_thread_without_callbacks import observe
from epprof_nb.recording.session.launch_log import LaunchLog
from epprof_nb.recording.session.recording import Batch
from tests.paths import ROOT, TESTS

NATIVE = ROOT / "epprof_nb" / "native"
CELL, WORKER, OTHER = 1, 2, 3
MS = 1_000_000


def ints(*values):
    return np.array(values, np.int64)


def cell_log(busy, *, end=100 * MS, tops=((0, 7),), every=MS):
    """The log of a thread that uses the CPU in the ranges `busy` and has the ops of `tops`."""
    at = np.arange(0, end + 1, every)
    cpu = sum(np.clip(at, low, high) - low for low, high in busy) + 0 * at
    times, ops = zip(*tops, (end, tops[-1][1]), strict=True)
    return CellLog(CELL, ints(*times), ints(*ops), at, cpu.astype(np.int64))


def calls(thread, at):
    return np.full(len(at), thread, np.int64), np.array(at, np.int64)


def test_a_waiting_cell_is_idle_before_all_but_the_first_call_of_a_thread():
    log = cell_log([(0, 10 * MS)])
    op, waited, ran = observe([log], *calls(WORKER, range(20 * MS, 60 * MS, MS)))
    assert set(op) == {7}
    assert waited.tolist() == [False, *[True] * 39]
    assert not ran.any()


def test_a_computing_cell_is_busy():
    log = cell_log([(0, 100 * MS)])
    _, waited, ran = observe([log], *calls(WORKER, range(20 * MS, 60 * MS, MS)))
    assert not waited.any()
    assert ran.sum() == 39


def test_short_bursts_are_judged_by_the_samples_around_them():
    burst = [20 * MS + 100_000, 20 * MS + 200_000, 20 * MS + 300_000]
    assert observe([cell_log([])], *calls(WORKER, burst))[1].tolist() == [False, True, True]
    assert observe([cell_log([(0, 100 * MS)])], *calls(WORKER, burst))[2].sum() == 2
    # A thread that is about to wait still uses some microseconds.
    falling_asleep = cell_log([(20 * MS + 150_000, 20 * MS + 180_000)], every=50_000)
    _, waited, ran = observe([falling_asleep], *calls(WORKER, burst))
    assert not (waited | ran).any()
    # The cell's thread may have used the CPU inside the burst or outside: neither is known.
    unsure = cell_log([(20 * MS, 20 * MS + 500_000)])
    _, waited, ran = observe([unsure], *calls(WORKER, burst))
    assert not waited.any()
    assert not ran.any()


def test_each_call_has_the_op_of_its_time():
    log = cell_log([], tops=((10 * MS, 7), (20 * MS, 0), (30 * MS, 8)))
    op, _, _ = observe([log], *calls(WORKER, [5 * MS, 15 * MS, 25 * MS, 35 * MS, 200 * MS]))
    assert op.tolist() == [-1, 7, -1, 8, -1]


def test_the_cells_own_calls_and_single_calls_say_nothing():
    log = cell_log([])
    op, waited, ran = observe([log], *calls(CELL, [20 * MS, 30 * MS]))
    assert op.tolist() == [-1, -1]
    _, waited, ran = observe([log], ints(WORKER, OTHER), ints(20 * MS, 30 * MS))
    assert not (waited | ran).any()


def test_a_call_is_not_compared_with_one_under_another_op():
    log = cell_log([], tops=((0, 7), (25 * MS, 8)))
    _, waited, ran = observe([log], *calls(WORKER, [20 * MS, 30 * MS]))
    assert not (waited | ran).any()


def test_without_a_log_nothing_is_attributed():
    for logs in ([], [CellLog(0, ints(), ints(), ints(), ints())]):
        op, waited, ran = observe(logs, *calls(WORKER, [1, 2, 3]))
        assert op.tolist() == [-1, -1, -1]
        assert not (waited | ran).any()
    op, waited, ran = observe([cell_log([], every=1000 * MS)], *calls(WORKER, [1, 2, 3]))
    assert op.tolist() == [7, 7, 7]
    assert not (waited | ran).any()


def test_a_log_in_parts_is_that_of_the_whole():
    whole = cell_log([(0, 10 * MS)], tops=((0, 7), (50 * MS, 8)))
    half = 51
    parts = [
        CellLog(CELL, ints(0, 40 * MS), ints(7, 7), whole.cpu_at_ns[:half], whole.cpu_ns[:half]),
        CellLog(
            CELL,
            ints(40 * MS, 50 * MS, 100 * MS),
            ints(7, 8, 8),
            whole.cpu_at_ns[half:],
            whole.cpu_ns[half:],
        ),
    ]
    at = [*range(20 * MS, 38 * MS, MS), *range(60 * MS, 80 * MS, MS)]
    for a, b in zip(observe([whole], *calls(WORKER, at)), observe(parts, *calls(WORKER, at)),
                    strict=True):  # fmt: skip
        assert a.tolist() == b.tolist()


def recorded(log, threads, at, external=()):
    """Output of a recorder with one API call per thread and time, `external` pushed on some."""
    n = len(at)
    table = Table(
        API_CALLS,
        {
            "domain": CategoryColumn.constant("runtime", n),
            "name": CategoryColumn.constant("cudaLaunchKernel_v7000", n),
            "thread_id": ints(*threads),
            "start_ns": ints(*at),
            "end_ns": ints(*at) + 10,
            "duration_ns": np.full(n, 10, np.int64),
            "correlation_id": np.arange(1, n + 1),
            "return_value": np.zeros(n, np.int64),
        },
    )
    pushed = (ints(*(c for c, _ in external)), ints(*(op for _, op in external)))
    return RecorderOutput(calls=RecordedCalls(table, *pushed, np.zeros(n, np.bool_), log))


def no_callbacks() -> Batch:
    _native.drain_launches()
    return Batch({}, _native.drain_launches(), [], 0)


def test_the_launch_log_is_that_of_the_callbacks():
    log = cell_log([(0, 40 * MS)])
    at = [20 * MS, 30 * MS, 50 * MS, 60 * MS, 70 * MS, 51 * MS, 61 * MS, 31 * MS, 21 * MS]
    threads = [OTHER, OTHER, OTHER, OTHER, CELL, WORKER, WORKER, CELL, WORKER]
    output = recorded(log, threads, at, external=[(8, 9)])
    launches = LaunchLog.of([no_callbacks()], [output], Table(OPS))
    assert launches.has_own_op.tolist() == [False] * 7 + [True] + [False]
    assert launches.op[7] == 9
    # OTHER launched while the cell computed, which makes it independent; WORKER did so once only.
    _, _, ran = observe([log], launches.thread, launches.start)
    assert ran[launches.thread == OTHER].any()
    assert not is_awaited_by_cell(launches)[launches.thread == OTHER].any()
    assert not is_awaited_by_cell(launches)[launches.thread == CELL].any()


def test_threads_that_only_launch_while_the_cell_waits_work_for_it():
    log = cell_log([(0, 40 * MS), (80 * MS, 100 * MS)], tops=((0, 7), (45 * MS, 8), (78 * MS, 9)))
    at = list(range(50 * MS, 70 * MS, MS))
    output = recorded(log, [WORKER] * 20, at)
    launches = LaunchLog.of([no_callbacks()], [output], Table(OPS))
    assert is_awaited_by_cell(launches).all()
    assert set((launches.op & ~np.uint64(1 << 63)).tolist()) == {8}


def test_an_op_that_another_thread_ended_has_no_later_calls():
    """Its id stays on its own thread until that thread opens or ends an op."""
    log = cell_log([], tops=((0, 7),))
    at = list(range(50 * MS, 54 * MS, MS))
    pushed = [(number, 9) for number in range(1, 5)]
    ends = ints(99, 52) * MS
    ops = Table(OPS, {"op_id": ints(7, 9), "start_ns": ints(0, 49 * MS), "end_ns": ends})
    output = recorded(log, [WORKER] * 4, at, external=pushed)
    launches = LaunchLog.of([no_callbacks()], [output], ops)
    assert launches.has_own_op.tolist() == [True, True, True, False]
    assert launches.op[:3].tolist() == [9, 9, 9]
    assert launches.op[3] == 7 | 1 << 63


def test_outputs_recorded_before_and_after_a_pause_are_one():
    first = recorded(cell_log([]), [WORKER], [20 * MS], external=[(1, 5)])
    second = RecorderOutput(dropped=3, failure=("CUDA_ERROR_ASSERT", "assert"))
    merged = RecorderOutput.merged([first, second])
    assert len(merged.calls.calls) == 1
    assert merged.calls.pushed_op.tolist() == [5]
    assert merged.dropped == 3
    assert merged.failure == ("CUDA_ERROR_ASSERT", "assert")
    assert merged.calls.cell_log.top_op.tolist() == [7, 7]
    assert RecorderOutput.merged([first]) is first
    assert RecorderOutput.merged([]).calls is None


def test_calls_of_the_profiler_are_told_by_name_and_by_its_waits():
    names = ["cuCtxSynchronize", "cuLaunchKernel", "cuCtxSynchronize", "cuCtxGetCurrent"]
    start = ints(10, 12, 30, 41) * MS
    columns = {"name": CategoryColumn.of(names), "start_ns": start, "end_ns": start + MS}
    calls = Table(API_CALLS, columns)
    waits = [(9 * MS, 14 * MS), (41 * MS, 42 * MS)]
    assert is_wait_of_profiler(calls, waits).tolist() == [True, False, False, True]
    assert not is_wait_of_profiler(calls, []).any()
    assert not is_wait_of_profiler(calls.take(slice(0)), waits).size


@pytest.fixture
def logging():
    _native.set_recording(ops=True, launches=True)
    _native.set_cell_thread(True)
    _native.start_cell_log()
    yield
    _native.stop_cell_log()
    _native.set_cell_thread(False)
    _native.set_recording(ops=False, launches=False)
    _native.drain_ops(_native.now_ns(), open_too=False)


def taken() -> CellLog:
    raw = _native.take_cell_log()
    column = {name: np.frombuffer(raw[name], np.int64) for name in raw if name != "thread_id"}
    return CellLog(
        raw["thread_id"], column["top_ns"], column["top_op_id"], column["cpu_at_ns"],
        column["cpu_ns"],
    )  # fmt: skip


@pytest.mark.usefixtures("logging")
def test_the_core_logs_the_top_of_the_cells_stack():
    with epprof_nb.op("outer"):
        outer = _native.top()
        with epprof_nb.op("inner"):
            inner = _native.top()
        first = taken()
    second = taken()
    assert first.thread_id == second.thread_id == _native.thread_id()
    assert first.top_op.tolist() == [0, outer, inner, outer, outer]
    assert (np.diff(first.top_ns) >= 0).all()
    assert second.top_op.tolist() == [outer, 0, 0]
    assert second.top_ns[0] == first.top_ns[-1]


@pytest.mark.usefixtures("logging")
def test_the_core_samples_the_cpu_time_of_the_cells_thread():
    before = time.thread_time_ns()
    taken()
    parts = []
    while sum(len(log.cpu_ns) for log in parts) < 10:  # the samples come from another thread
        sum(range(10_000))
        parts.append(taken())
    after = time.thread_time_ns()
    cpu, at = (
        np.concatenate([getattr(log, name) for log in parts]) for name in ("cpu_ns", "cpu_at_ns")
    )
    assert (np.diff(at) > 0).all()
    assert (np.diff(cpu) >= 0).all()
    assert before <= cpu[0] <= cpu[-1] <= after


@pytest.mark.usefixtures("logging")
def test_other_threads_leave_no_trace_in_the_log():
    def work():
        with epprof_nb.op("elsewhere"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert taken().top_op.tolist() == [0, 0]


def test_a_stopped_log_is_empty():
    _native.set_cell_thread(True)
    _native.start_cell_log()
    _native.stop_cell_log()
    _native.set_cell_thread(False)
    assert _native.take_cell_log()["thread_id"] == 0
    _native.start_cell_log()  # no cell's thread: nothing to log
    assert _native.take_cell_log()["top_ns"] == b""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_callback_does_not_take_a_thread_that_falls_asleep_for_a_busy_one(tmp_path):
    program = tmp_path / "cell_thread_wait"
    source = TESTS / "helpers" / "native" / "cell_thread_wait.cpp"
    subprocess.run(["g++", "-std=c++17", f"-I{NATIVE}", source, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
