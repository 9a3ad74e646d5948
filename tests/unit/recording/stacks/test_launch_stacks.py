"""Stacks of launches on the host device: those of the lines that launched."""

import gc
import sys
import threading

import pandas as pd
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.commands.info import describe
from epprof_nb.core.options import Options
from epprof_nb.recording.session import profile_info
from epprof_nb.recording.session import service as services
from epprof_nb.recording.session.launch_log import LaunchLog
from epprof_nb.recording.stacks import availability, stack_log
from epprof_nb.recording.stacks.resolution import resolve
from epprof_nb.recording.statements.markers import install_markers
from tests.helpers.marked_cells import marked
from tests.helpers.threads import run_all

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)


class Launched:
    """Stacks of the launches of some code."""

    def __init__(self, run, **options):
        subscription = services.Subscription(Options(**options))
        services.service.open(subscription)
        try:
            run()
        finally:
            recording = services.service.close(subscription)
        log = LaunchLog.of(recording.batches, [], None)
        launches = log.names.equals("hostLaunchKernel")
        self.names = [log.names.categories[code] for code in log.names.codes]
        self.found = resolve(recording.stacks, [log.stack])
        rows = self.found.rows(log.stack[launches])
        tree = self.found.stacks
        self.stacks = [tree.frames(row) for row in rows]

    def own(self):
        """The frames of this file, as function and line, the innermost first."""
        return [
            [(f.function.rpartition(".")[2], f.line) for f in frames if f.file == __file__]
            for frames in self.stacks
        ]


def launch():
    host.launch(int)


LAUNCH = launch.__code__.co_firstlineno + 1
"""The line that launches."""


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def test_each_launch_has_the_stack_of_its_line():
    def run():
        launch()
        for _ in range(3):
            launch()

    found = Launched(run).own()
    outer = [frames[1:2] for frames in found]
    assert [frames[0] for frames in found] == [("launch", LAUNCH)] * 4
    assert outer == [[("run", line_of(run, 1))], *[[("run", line_of(run, 3))]] * 3]
    assert [frames[2][0] for frames in found] == ["__init__"] * 4


def test_the_stacks_of_an_earlier_session_are_forgotten():
    """Their numbers are those of other stacks in the next one."""

    def run():
        for function in functions:
            function()

    found, functions = [], [lambda: host.launch(int), launch]
    while functions:
        found.append(Launched(run).own())
        del functions[0]
    assert found[1] == found[0][1:]


def test_equal_stacks_are_one():
    found = Launched(lambda: [launch() for _ in range(100)])
    assert len({id(frames) for frames in found.stacks}) == 100
    assert len({tuple(frames) for frames in found.stacks}) == 1
    # Each function is there once.
    facts = list(zip(found.found.stacks.file, found.found.stacks.function, strict=True))
    assert len(facts) == len(set(facts))


def test_threads_have_their_own_stacks_in_one_tree():
    def work():
        launch()

    def run():
        run_all(threading.Thread(target=work) for _ in range(8))

    found = Launched(run)
    assert found.own() == [[("launch", LAUNCH), ("work", line_of(work, 1))]] * 8
    assert len({tuple(frames) for frames in found.stacks}) == 1
    assert found.stacks[0][-1].function == "Thread._bootstrap"


def test_waits_have_stacks():
    def run():
        launch()
        host.synchronize()

    subscription = services.Subscription(Options())
    services.service.open(subscription)
    run()
    recording = services.service.close(subscription)
    log = LaunchLog.of(recording.batches, [], None)
    stacks = resolve(recording.stacks, [log.stack])
    waits = log.names.equals("hostDeviceSynchronize")
    rows = stacks.rows(log.stack[waits])
    assert len(rows) == 1
    frames = stacks.stacks.frames(rows[0])
    assert ("run", line_of(run, 2)) in [(f.function.rpartition(".")[2], f.line) for f in frames]


def test_a_freed_function_is_not_taken_for_another():
    # Code objects of functions that ended are freed, and new ones are made at their addresses. The
    # line differs although nothing else does.
    count = 3000
    addresses = set()

    def run():
        for i in range(count):
            namespace = {"launch": launch}
            exec("\n" * (i % 7) + "def function():\n    launch()\n", namespace)
            addresses.add(id(namespace["function"].__code__))
            namespace["function"]()
            del namespace["function"]

    found = Launched(run)
    lines = [frames[i].line for frames in found.stacks for i in range(len(frames))
             if frames[i].file == "<string>" and frames[i].function == "function"]  # fmt: skip
    assert lines == [i % 7 + 2 for i in range(count)]
    assert len(addresses) < count, "the interpreter used no address twice"


def test_names_of_all_kinds_are_kept():
    names = ["plain", "n\xe4me", "\u540d\u524d", "\U0001d11e", "\udcff"]

    def run():
        for name in names:
            exec(compile("launch()", name, "exec"), {"launch": launch})

    files = [
        next(frame.file for frame in frames if frame.function == "<module>")
        for frames in Launched(run).stacks
    ]
    assert files == [*names[:-1], "\\udcff"]


def test_a_name_of_megabytes_is_cut():
    name = "x" * 3_000_000

    def run():
        exec(compile("launch()", name, "exec"), {"launch": launch})

    [frames] = Launched(run).stacks
    assert next(frame.file for frame in frames if frame.function == "<module>") == "x" * 4096


def test_the_outermost_frames_of_a_very_deep_stack_are_cut_off_and_counted():
    def descend(depth):
        if depth:
            descend(depth - 1)
        else:
            launch()

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        found = Launched(lambda: descend(2000))
    finally:
        sys.setrecursionlimit(limit)
    [frames] = found.stacks
    assert 1000 < len(frames) <= 1024
    assert found.own()[0][0] == ("launch", LAUNCH)
    assert found.found.stacks.truncated == 1


def test_memory_of_stacks_is_bounded():
    functions = {}
    for i in range(2000):
        exec(f"def f{i}():\n    launch()", {"launch": launch}, functions)

    def run():
        for function in functions.values():
            function()

    bound = 1 << 28
    _native.set_stack_bound(200_000)
    try:
        found = Launched(run)
    finally:
        _native.set_stack_bound(bound)
    without = sum(not frames for frames in found.stacks)
    assert 0 < without < 2000
    # Waits may be without one, too.
    assert found.found.stacks.dropped >= without
    assert not any(not frames for frames in Launched(run).stacks)


def test_a_thread_that_waits_keeps_no_memory_of_a_session_that_ended():
    functions = {}
    for i in range(2000):
        exec(f"def f{i}():\n    launch()", {"launch": launch}, functions)

    def launch_all():
        for function in functions.values():
            function()

    bound = 1 << 28
    ended = threading.Event()
    began = threading.Event()

    def work():
        launch_all()
        began.set()
        ended.wait()

    thread = threading.Thread(target=work)

    def run():
        thread.start()
        began.wait()

    _native.set_stack_bound(2_000_000)
    try:
        assert Launched(run).found.stacks.dropped == 0
        assert Launched(launch_all).found.stacks.dropped == 0
    finally:
        _native.set_stack_bound(bound)
        ended.set()
        thread.join()


def test_a_nested_profile_has_the_stacks_that_were_seen_before_it():
    def work():
        launch()

    with epprof_nb.profile():
        work()
        found = Launched(work)
    assert found.own()[0][:2] == [("launch", LAUNCH), ("work", line_of(work, 1))]


def test_stacks_can_be_switched_off():
    found = Launched(launch, stacks=False)
    assert found.stacks == [[]]
    assert _native.current_stack() == -1


def test_a_nested_profile_may_switch_them_on():
    def outer():
        launch()
        assert Launched(launch).own()[0][0] == ("launch", LAUNCH)

    assert Launched(outer, stacks=False).own()[0] == []


def test_a_finalizer_that_launches_has_the_stack_of_the_line_that_ran_it():
    class Launches:
        def __del__(self):
            launch()

    def run():
        made = Launches()
        made = None  # noqa: F841
        cycle = Launches()
        cycle.self = cycle
        del cycle
        gc.collect()

    found = Launched(run).own()
    assert [[name for name, _ in frames[:3]] for frames in found] == [
        ["launch", "__del__", "run"]
    ] * 2
    assert [frames[2][1] for frames in found] == [line_of(run, 2), line_of(run, 6)]


def test_activities_and_calls_of_a_profile_have_stacks(tmp_path):
    def work():
        launch()
        host.synchronize()

    with epprof_nb.profile() as prof:
        work()
    prof.save(tmp_path / "run.epprof")
    prof = epprof_nb.load(tmp_path / "run.epprof")
    stacks, kernels = prof.stacks, prof.activities.query("kind == 'kernel'")
    waits = prof.activities.query("kind == 'synchronization'")
    assert prof.activities["stack_source"].tolist() == ["exact"] * 2
    assert kernels["stack_id"].tolist() == prof.api_calls["stack_id"].tolist()[:1]
    for rows, expected in ((kernels, ["launch", "work"]), (waits, ["work"])):
        functions, row = [], rows["stack_id"].iloc[0]
        while row is not None:
            if stacks.loc[row, "file"] == __file__:
                functions.append(stacks.loc[row, "function"].rpartition(".")[2])
            parent = stacks.loc[row, "parent_id"]
            row = None if pd.isna(parent) else parent
        assert functions[: len(expected)] == expected
    assert prof.info["recording"]["stacks"]
    assert prof.info["stacks"] == {"truncated": 0, "dropped": 0}


def test_a_profile_without_stacks_says_so():
    with epprof_nb.profile(stacks=False) as prof:
        launch()
    assert prof.activities["stack_id"].isna().all()
    assert not prof.info["recording"]["stacks"]
    assert len(prof.stacks) == 0


def on_thread_without_python():
    """Log a call like one of a thread that works for the open op: without frames."""
    _native.pause_stacks()
    host.launch(int)
    _native.resume_stacks()


def test_work_without_frames_has_the_stack_of_its_op():
    def run():
        with epprof_nb.op("outer"):
            work()

    def work():
        with epprof_nb.op("inner"):
            on_thread_without_python()

    with epprof_nb.profile() as prof:
        run()
    [kernel] = prof.activities.query("kind == 'kernel'").itertuples()
    assert kernel.stack_source == "op"
    stacks = prof.stacks
    assert stacks.loc[kernel.stack_id, "function"].endswith("work")
    assert stacks.loc[kernel.stack_id, "line"] == line_of(work, 1)
    assert stacks.loc[stacks.loc[kernel.stack_id, "parent_id"], "line"] == line_of(run, 2)
    assert prof.api_calls["stack_source"].tolist() == ["op"]


def test_statements_have_the_stack_of_their_first_execution():
    code = compile(marked("for i in range(3):\n    launch()\n"), "<cell>", "exec")
    names = {"launch": on_thread_without_python}
    install_markers(names)
    with epprof_nb.profile() as prof:
        exec(code, names)
    kernels = prof.activities.query("kind == 'kernel'")
    assert kernels["stack_source"].tolist() == ["op"] * 3
    assert prof.stacks.loc[kernels["stack_id"], "line"].tolist() == [2] * 3


def test_work_of_no_op_without_frames_has_no_stack():
    with epprof_nb.profile() as prof:
        on_thread_without_python()
    assert prof.activities["stack_id"].isna().all()
    assert prof.activities["stack_source"].isna().all()


def test_a_profile_tells_why_it_has_no_stacks(monkeypatch):
    for module in (stack_log, profile_info):
        monkeypatch.setattr(module, "why_unavailable", lambda: "the interpreter is free-threaded")
    with epprof_nb.profile() as prof:
        launch()
    assert prof.activities["stack_id"].isna().all()
    assert prof.info["no_stacks"] == "the interpreter is free-threaded"
    assert "not recorded: the interpreter is free-threaded" in describe(prof)
    with epprof_nb.profile(stacks=False) as prof:
        launch()
    assert "no_stacks" not in prof.info
