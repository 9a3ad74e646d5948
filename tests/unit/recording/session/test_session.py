"""Sessions and the recording service on the host device: recordings, limits, faults, forks."""

import threading
import time
from itertools import pairwise

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.core.errors import CaptureError
from epprof_nb.core.options import Options
from epprof_nb.files.epprof.info_schema import check_info
from epprof_nb.recording.session import session
from epprof_nb.recording.session.profile_info import notes_on_statements
from epprof_nb.recording.session.service import service
from tests.helpers import tiny
from tests.helpers.session_work import kernels, work
from tests.helpers.threads import run_all
from tests.helpers.time_limits import TimeLimits

pytestmark = pytest.mark.usefixtures("nothing_leaks")


def test_an_empty_profile_has_every_table_with_its_full_schema():
    with epprof_nb.profile() as prof:
        pass
    for name, table in prof.tables.items():
        frame = table.to_frame()
        assert len(frame) == 0, name
        columns = [*([frame.index.name] if frame.index.name else []), *frame.columns]
        derived = [column.name for column in table.schema.derived]
        assert set(derived) <= set(columns)
        assert tuple(c for c in columns if c not in derived) == table.schema.names
    assert len(prof.by_op()) == len(prof.by_line()) == len(prof.by_kernel()) == 0
    assert "No device work" in repr(prof)


def test_nested_profiles_see_exactly_their_slices():
    with epprof_nb.profile() as outer, epprof_nb.op("outer"):
        work("a")
        with epprof_nb.profile() as inner, epprof_nb.op("inner"):
            work("b")
        work("c")
    assert kernels(outer) == ["a", "b", "c"]
    assert kernels(inner) == ["b"]
    assert outer.ops["name"].tolist() == ["outer", "inner"]
    around = inner.ops.set_index("name").loc["outer"]
    assert around["status"] == "open"
    assert around["start_ns"] < 0
    assert (outer.ops["status"] == "complete").all()


def test_overlapping_profiles_see_exactly_their_slices():
    first, second = session.start(), None
    work("only first")
    second = session.start()
    work("both")
    one = first.stop()
    work("only second")
    two = second.stop()
    assert kernels(one) == ["only first", "both"]
    assert kernels(two) == ["both", "only second"]


def test_a_launch_before_a_slice_is_not_in_it_even_if_it_ends_inside():
    slow, gate = host.empty((1,)), threading.Event()
    with epprof_nb.profile():
        host.launch(lambda _: gate.wait(), slow, name="slow")
        with epprof_nb.profile() as inner:
            work("inside")
            gate.set()
            host.synchronize()
    assert kernels(inner) == ["inside"]


def test_the_flush_is_no_part_of_the_wall_time():
    with epprof_nb.profile() as prof:
        op = _native.push(_native.intern("still open"), 0)
        host.synchronize()
    _native.pop(op)
    with epprof_nb.profile() as without_work:
        pass
    assert prof.info["wall_ns"] == max(prof.info["code_ns"], prof.ops["end_ns"].max())
    assert without_work.info["wall_ns"] == without_work.info["code_ns"]


def test_the_hundredth_session_is_as_right_as_the_first():
    for _ in range(100):
        with epprof_nb.profile() as prof, epprof_nb.op("again"):
            work("k")
        assert kernels(prof) == ["k"]
        assert prof.info["attribution"] == {"stack": 1, "cell": 0, "learned": 0, "none": 0}


def test_an_exception_comes_through_and_the_profile_is_kept():
    profiler = epprof_nb.profile()
    prof = None

    def code():
        nonlocal prof
        with profiler as prof:
            work("before")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        code()
    assert kernels(prof) == ["before"]
    assert prof.info["error"] == "ZeroDivisionError"


def test_stopping_twice_says_what_to_do():
    one = session.start()
    one.stop()
    with pytest.raises(CaptureError, match="Start a new profile"):
        one.stop()


def test_recording_stops_at_the_time_limit_and_the_code_goes_on(monkeypatch):
    limits = TimeLimits(monkeypatch)
    begun = _native.now_ns()
    with epprof_nb.profile(time_limit_s=0.1) as prof:
        work("early")
        limits.reach()
        reached = _native.now_ns()
        work("late")
    assert kernels(prof) == ["early"]
    assert 0 < prof.wall_ns <= reached - begun
    assert any("0.1 s" in note for note in prof.info["notes"])


def test_a_time_limit_that_is_not_reached_has_no_note():
    recorded = session.start(Options(time_limit_s=3600.0))
    assert recorded.stop(ended_ns=_native.now_ns()).info["notes"] == []


def test_code_that_ended_before_the_begin_has_no_negative_time():
    """The code of another process: its end is known only after the begin here."""
    recorded = session.start(Options())
    info = recorded.stop(ended_ns=recorded.opened_ns - 1_000).info
    assert info["code_ns"] == 0
    check_info(info)


@pytest.mark.parametrize(
    ("starts", "ends", "until", "bounds"),
    [
        ([110, 120, 130], [], 140, [[10, 20], [20, 30], [30, 40]]),  # until the next one
        ([110, 120], [115, 128], 140, [[10, 15], [20, 28]]),
        ([110, 120, 130], [115], 140, [[10, 15], [20, 30], [30, 40]]),
        ([110, 120, 130], [115, 125, 135], 123, [[10, 15], [20, 23]]),  # cut by a time limit
        ([110, 120], [], 120, [[10, 20]]),  # began at the end
        ([110], [], 110, []),
    ],
)
def test_repeats_end_with_the_recording_at_the_latest(starts, ends, until, bounds):
    assert session._bounds(starts, ends, until, origin=100) == bounds


def test_a_recording_may_end_before_the_first_repeat_begins():
    recorded = session.start()
    recorded.stop_recording()
    recorded.begin_repeat()
    recorded.end_repeat()
    made = recorded.stop()
    check_info(made.info)
    assert made.info["repeats"] == made.info["repeat_waits_ns"] == []


def test_a_time_limit_is_reached_by_itself():
    with epprof_nb.profile(time_limit_s=0.05) as prof:
        while service.open_subscriptions:  # until the limit has closed it
            time.sleep(0.005)
        work("late")
    assert kernels(prof) == []
    assert prof.wall_ns >= 50_000_000


def test_shown_and_lost_add_up_to_launched_beyond_the_record_limit():
    with epprof_nb.profile(max_records=20) as prof:
        for _ in range(100):
            work("many")
    recorded = prof.info["recorded"]
    assert recorded["shown"]["kernel"] + recorded["lost"]["kernel"] == 100
    assert recorded["launched"]["kernel"] == 100
    assert recorded["shown"]["kernel"] <= 20
    (note,) = prof.info["notes"]
    assert note.startswith(f"Recorded {len(prof.activities)} of ")
    assert "The limit is 20 records: raise it (`%%gpuprofile --max-records " in note


def test_a_full_op_log_keeps_the_device_time_and_says_what_is_lost():
    in_use = _native.counters()["op_chunks"]
    _native.set_limits(op_chunks=in_use + 2)
    try:
        with epprof_nb.profile() as prof:
            for _ in range(2000):
                with epprof_nb.op("many"):
                    pass
            with epprof_nb.op("last"):
                work("k")
    finally:
        _native.set_limits()
    assert prof.info["recorded"]["ops_lost"] + len(prof.ops) == 2001
    assert kernels(prof) == ["k"]
    by_op = prof.by_op()
    assert by_op["self_device_ns"].sum() == prof.activities["duration_ns"].sum()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"detail": "everything"}, "unknown detail 'everything'"),
        ({"detail": " ,,"}, "detail ' ,,' is empty; choose one or more of default, api"),
        ({"max_records": 0}, "max_records"),
        ({"time_limit_s": -1}, "time_limit_s"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(options, said):
    with pytest.raises(ValueError, match=said):
        epprof_nb.profile(**options)


def test_profile_used_as_a_decorator_points_to_op():
    with pytest.raises(TypeError, match=r"epprof_nb\.op"):
        epprof_nb.profile()(lambda: None)


def test_threads_that_end_inside_a_session_leave_their_work():
    def one(i):
        with epprof_nb.op(f"op_{i}"):
            work(f"op_{i}")

    with epprof_nb.profile() as prof:
        for i in range(30):
            thread = threading.Thread(target=one, args=(i,))
            thread.start()
            thread.join()
    ops = prof.ops["name"]
    rows = prof.activities[prof.activities["kind"] == "kernel"]
    assert len(rows) == 30
    assert all(name == ops[op] for name, op in zip(rows["name"], rows["op_id"], strict=True))


def test_work_of_a_worker_that_the_statement_waits_for_is_the_statements():
    def worker():
        for _ in range(20):
            time.sleep(0.005)
            work("w")

    with epprof_nb.profile() as prof, epprof_nb.op("waits"):
        thread = threading.Thread(target=worker)
        thread.start()
        thread.join()
    rows = prof.activities[prof.activities["kind"] == "kernel"]
    assert set(rows["attribution"]) == {"cell"}
    assert {prof.ops["name"][op] for op in rows["op_id"]} == {"waits"}


def test_work_of_a_thread_that_runs_beside_busy_code_is_nobodys():
    done = threading.Event()
    launched = []

    def beside():
        while not done.is_set():
            time.sleep(0.002)
            launched.append((time.monotonic_ns(), time.clock_gettime_ns(cpu_clock)))
            work("w")

    cpu_clock = time.pthread_getcpuclockid(threading.get_ident())
    with epprof_nb.profile() as prof, epprof_nb.op("busy"):
        thread = threading.Thread(target=beside)
        thread.start()
        # Until this thread had a processor for most of the time between two launches, which other
        # processes may prevent for long.
        while not was_busy(launched):
            sum(range(500))
        done.set()
        thread.join()
    rows = prof.activities[prof.activities["kind"] == "kernel"]
    assert len(rows) > 5
    assert set(rows["attribution"]) == {"none"}
    assert prof.info["attribution"]["none"] == len(prof.activities)


def was_busy(launched: list[tuple[int, int]]) -> bool:
    """Whether a thread used its processor for half of the time between two launches, after five.

    Each launch has its time and the CPU time of the thread, in nanoseconds.
    """
    return any(
        2 * (cpu - cpu_before) > at - before
        for (before, cpu_before), (at, cpu) in pairwise(launched[5:])
    )


def test_rows_of_every_table_are_in_the_order_of_their_starts():
    streams = [host.Stream() for _ in range(3)]

    def one(stream):
        for _ in range(20):
            with epprof_nb.op("o"):
                array = host.empty((16,))
                host.launch(lambda a: a.fill(1), array, name="k", stream=stream)

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=one, args=(stream,)) for stream in streams)
    assert len(prof.activities) >= 60
    for frame in (prof.ops, prof.activities, prof.api_calls):
        assert frame["start_ns"].is_monotonic_increasing


def test_changing_a_frame_does_not_change_the_profile():
    with epprof_nb.profile() as prof, epprof_nb.op("kept", a=1):
        work("k")
    frame = prof.ops
    frame["start_ns"] = 0
    frame.loc[:, "count"] = 7
    with pytest.raises(TypeError, match="copy"):
        frame["args"].iloc[0]["a"] = 2
    activities = prof.activities
    activities["bytes"] = activities["bytes"].fillna(5)
    assert prof.ops["start_ns"].iloc[0] > 0
    assert prof.ops["count"].iloc[0] == 1
    assert prof.ops["args"].iloc[0] == {"a": 1}
    assert prof.activities["bytes"].isna().all()


def test_a_recorder_that_cannot_start_is_told_and_costs_nothing_else(monkeypatch):
    from epprof_nb.recording.host.recorder import HostRecorder
    from epprof_nb.recording.recorder import Recorder
    from epprof_nb.recording.session import service

    class Broken(Recorder):
        name = "broken"

        def start(self, options):
            raise CaptureError("CUPTI is held by nsys.")

    monkeypatch.setattr(service, "_recorders", lambda: (Broken(), HostRecorder()))
    with epprof_nb.profile() as prof, epprof_nb.op("goes on"):
        work("k")
    assert kernels(prof) == ["k"]
    assert prof.info["notes"] == ["CUPTI is held by nsys."]


def test_a_missing_gpu_is_said_once_in_a_process(monkeypatch):
    from epprof_nb.recording.host.recorder import HostRecorder
    from epprof_nb.recording.session import profile_info, service

    monkeypatch.setattr(service, "_recorders", lambda: (HostRecorder(),))
    monkeypatch.setattr(profile_info, "_UNSAID", [True])
    profiles = []
    for use_device in (True, False, False):
        with epprof_nb.profile() as prof, epprof_nb.op("an op"):
            if use_device:
                work("k")
        profiles.append(prof)
    # A profile with work on the host device needs no explanation.
    assert [prof.info["no_gpu"]["is_first"] for prof in profiles] == [False, True, False]
    assert ["No GPU was found" in repr(prof) for prof in profiles] == [False, True, False]
    assert "No device work. (Host ops are shown.)" in repr(profiles[2])


def test_a_nested_profile_may_ask_for_more_detail():
    with epprof_nb.profile():
        with epprof_nb.profile(detail="memory") as inner:
            host.empty((100,), np.float64)
        assert inner.memory["operation"].tolist() == ["allocation", "release"]
        assert inner.memory["bytes"].tolist() == [800, 800]


def test_options_know_their_parts():
    options = Options(detail="api, memory")
    assert options.records("api")
    assert options.records("memory")
    assert not options.records("overhead")
    assert Options(detail="all").records("overhead")


def test_very_many_statements_are_noted():
    made = tiny.profile(ops=[tiny.line(1, 1, 0, 9), tiny.line(2, 2, 1, 8, count=1_500_000)])
    (note,) = notes_on_statements(made.tables["ops"], 0)
    assert note.startswith("1,500,001 executions of statements were recorded")
    assert "--no-lines" in note
    few = tiny.profile(ops=[tiny.line(1, 1, 0, 9), tiny.op(2, "f", 0, 9, count=2_000_000)])
    assert notes_on_statements(few.tables["ops"], 0) == []
    (note,) = notes_on_statements(few.tables["ops"], 1234)
    assert note.startswith("1,234 executions of statements in recursive calls were not recorded")


def test_options_are_united_by_what_they_record():
    union = Options(detail="api", max_records=5).union(Options(detail="memory", max_records=9))
    assert union.detail == "api,memory"
    assert union.max_records == 9
    assert Options(detail="all").union(Options()).details == {"api", "memory", "overhead"}
    assert Options().union(Options()).detail == "default"


def test_a_nested_profile_does_not_narrow_the_outer_one():
    array = host.empty((4,))
    with epprof_nb.profile(detail="memory") as outer:
        with epprof_nb.profile(detail="api"):
            host.launch(lambda a: a.fill(1), array, name="inside")
        host.empty((8,))
    assert len(outer.memory)
