"""Ops in generators and coroutines leave the stack while these are suspended."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import pytest

from epprof_nb import _native
from epprof_nb.core.options import Options
from epprof_nb.recording.ranges import suspension
from epprof_nb.recording.ranges.ranges import op
from epprof_nb.recording.session import session
from tests.helpers.recorded_ops import drained, recording, stack

MS = 1_000_000


def wait(ms: float) -> None:
    end = _native.now_ns() + ms * MS
    while _native.now_ns() < end:
        pass


def numbers(n):
    with op("gen"):
        for i in range(n):  # noqa: UP028 - the frame with the op is the one that yields
            yield i


def rows_named(rows, name):
    return [row for row in rows if row.name == name]


def test_a_yield_takes_the_op_off_and_resumption_puts_it_back():
    with recording():
        it = numbers(2)
        with op("first"):
            next(it)
            assert stack() == "first"
        wait(5)
        assert _native.depth() == 0
        with op("second"):
            next(it)
            assert stack() == "second"
            assert list(it) == []
        rows = drained()
    (row,) = rows_named(rows, "gen")
    assert row.parent == "first"
    assert row.suspended_ns >= 5 * MS
    assert row.duration_ns + row.suspended_ns == row.end_ns - row.start_ns
    assert row.flags == 0


def test_ops_inside_run_while_the_generator_does():
    def outer():
        with op("outer"):
            yield stack()
            with op("inner"):
                yield stack()
            yield stack()

    with recording(), op("caller"):
        assert list(outer()) == ["outer", "inner", "outer"]
        assert stack() == "caller"


def test_a_chain_of_yield_from_moves_as_one():
    def outer():
        with op("outer"):
            yield from numbers(2)
            yield stack()

    with recording():
        it = outer()
        next(it)
        assert _native.depth() == 0
        assert next(it) == 1
        assert next(it) == "outer"
        it.close()
        rows = drained()
        assert _native.depth() == 0
    assert rows_named(rows, "gen")[0].parent == "outer"
    assert all(row.flags == 0 for row in rows)


@pytest.mark.parametrize("end", ["close", "throw", "collect", "exhaust"])
def test_every_end_of_a_generator_closes_its_ops(end):
    with recording():
        it = numbers(2)
        next(it)
        with op("caller"):
            if end == "close":
                it.close()
            elif end == "throw":
                with pytest.raises(KeyError):
                    it.throw(KeyError())
            elif end == "collect":
                del it
                gc.collect()
            else:
                list(it)
            assert stack() == "caller"
        rows = drained()
        assert _native.depth() == 0
    (row,) = rows_named(rows, "gen")
    assert row.flags == 0
    assert len(rows) == 2


def test_throw_into_a_generator_that_goes_on():
    def stubborn():
        with op("gen"):
            try:
                yield
            except KeyError:
                yield stack()

    with recording():
        it = stubborn()
        next(it)
        assert it.throw(KeyError()) == "gen"
        assert _native.depth() == 0
        it.close()
        assert not drained()[-1].flags


def test_generators_interleave():
    with recording():
        a, b = numbers(3), numbers(3)
        assert [next(i) for i in (a, b, a, b, a, b)] == [0, 0, 1, 1, 2, 2]
        assert _native.depth() == 0
        a.close()
        b.close()
        rows = rows_named(drained(), "gen")
    assert [row.parent for row in rows] == [None, None]


def test_tasks_interleave():
    async def task(name):
        with op(name):
            assert stack() == name
            for _ in range(3):
                await asyncio.sleep(0.002)
                assert stack() == name

    async def main():
        with op("main"):
            await asyncio.gather(*(task(f"task {i}") for i in range(4)))
            assert stack() == "main"

    with recording():
        asyncio.run(main())
        rows = drained()
        assert _native.depth() == 0
    tasks = [row for row in rows if row.name.startswith("task")]
    assert len(tasks) == 4
    assert {row.parent for row in tasks} == {None}
    assert all(row.suspended_ns >= 5 * MS and row.flags == 0 for row in tasks)


def test_awaits_of_coroutines_nest():
    async def inner():
        with op("inner"):
            await asyncio.sleep(0)
            return stack()

    async def outer():
        with op("outer"):
            return await inner(), stack()

    with recording():
        assert asyncio.run(outer()) == ("inner", "outer")
        rows = drained()
    assert [(r.name, r.parent) for r in rows] == [("outer", None), ("inner", "outer")]


def test_a_cancelled_task_closes_its_ops():
    async def sleeper():
        with op("sleeper"):
            try:
                await asyncio.sleep(10)
            finally:
                with op("cleanup"):
                    pass

    async def main():
        task = asyncio.create_task(sleeper())
        await asyncio.sleep(0.002)
        assert _native.depth() == 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with recording():
        asyncio.run(main())
        rows = drained()
        assert _native.depth() == 0
    assert [(r.name, r.parent, r.flags) for r in rows] == [
        ("sleeper", None, 0),
        ("cleanup", "sleeper", 0),
    ]


def test_asynchronous_generators():
    async def agen():
        with op("agen"):
            for i in range(3):
                await asyncio.sleep(0)
                assert stack() == "agen"
                yield i

    async def main():
        with op("main"):
            async for _ in agen():
                assert stack() == "main"
            it = agen()
            await anext(it)
            with pytest.raises(KeyError):
                await it.athrow(KeyError())
            it = agen()
            await anext(it)
            await it.aclose()
            assert stack() == "main"

    with recording():
        asyncio.run(main())
        rows = drained()
        assert _native.depth() == 0
    assert len(rows_named(rows, "agen")) == 3
    assert all(row.flags == 0 for row in rows)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="profile functions belong to one thread")
def test_a_generator_goes_on_in_another_thread():
    seen = []

    def gen():
        with op("gen"):
            yield
            seen.append((stack(), _native.thread_id()))
            yield

    with recording():
        it = gen()
        next(it)
        thread = threading.Thread(target=next, args=[it])
        thread.start()
        thread.join()
        it.close()
        rows = drained()
    assert [name for name, _ in seen] == ["gen"]
    assert seen[0][1] != _native.thread_id()
    assert len(rows) == 1


def test_an_op_that_opens_resumes_its_generator_in_another_thread():
    def gen():
        with op("gen"):
            for _ in range(3):
                with op("part"):
                    pass
                yield

    def work():
        with op("worker"):
            for _ in it:
                assert stack() == "worker"

    with recording():
        it = gen()
        next(it)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        rows = drained()
    parents = [(row.name, row.parent) for row in rows]
    assert parents == [
        ("gen", None), ("part", "gen"), ("worker", None), ("part", "gen"), ("part", "gen"),
    ]  # fmt: skip
    assert all(row.flags == 0 for row in rows)


@pytest.mark.parametrize("ends_early", [True, False])
def test_an_op_suspended_at_the_end_of_a_profile_keeps_its_times_and_thread(ends_early):
    def gen():
        with op("gen"):
            wait(1)
            yield

    it = gen()
    running = session.start(Options())
    thread = threading.Thread(target=next, args=[it])
    thread.start()
    thread.join()
    wait(1)
    ended = _native.now_ns()
    wait(5)
    recorded = running.stop(ended_ns=ended if ends_early else None)
    row = recorded.tables["ops"].to_frame().iloc[0]
    assert row["status"] == "open"
    assert row["thread_id"] == thread.native_id
    assert row["duration_ns"] >= 1 * MS
    assert row["suspended_ns"] >= 1 * MS
    assert row["duration_ns"] + row["suspended_ns"] == row["end_ns"] - row["start_ns"]
    assert (row["suspended_ns"] >= 6 * MS) is not ends_early


def test_a_session_may_end_inside():
    it = numbers(3)
    with recording():
        next(it)
    assert next(it) == 1
    with recording():
        with op("later"):
            next(it)
            assert stack() == "later"
        assert list(it) == []
        assert [row.name for row in drained()] == ["later"]
    with recording():
        assert list(numbers(2)) == [0, 1]
        assert len(drained()) == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring")
class TestMonitoring:
    def test_the_tool_is_given_back(self):
        before = [sys.monitoring.get_tool(i) for i in range(6)]
        with recording():
            it = numbers(2)
            next(it)
            assert suspension.TOOL_NAME in [sys.monitoring.get_tool(i) for i in range(6)]
        assert [sys.monitoring.get_tool(i) for i in range(6)] == before

    def test_no_free_tool_is_said_and_harms_nothing(self):
        free = [i for i in range(6) if sys.monitoring.get_tool(i) is None]
        for i in free:
            sys.monitoring.use_tool_id(i, "other")
        try:
            with recording():
                with pytest.warns(RuntimeWarning, match=r"all tool ids of sys\.monitoring"):
                    assert list(numbers(2)) == [0, 1]
                assert len(drained()) == 1
        finally:
            for i in free:
                sys.monitoring.free_tool_id(i)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.setprofile")
class TestProfileFunction:
    def test_it_is_set_only_while_needed(self):
        with recording():
            assert sys.getprofile() is None
            it = numbers(2)
            next(it)
            assert sys.getprofile() is not None
            list(it)
            assert sys.getprofile() is None

    def test_code_may_set_it_again(self):
        with recording():
            it = numbers(2)
            next(it)
            before = sys.getprofile()
            sys.setprofile(None)
            sys.setprofile(before)
            assert _native.depth() == 0
            next(it)
            assert _native.depth() == 0
            assert list(it) == []
            assert sys.getprofile() is None
            (row,) = drained()
        assert row.suspended_ns > 0
        assert row.flags == 0

    def test_a_function_that_calls_it_stays_set(self):
        with recording():
            it = numbers(2)
            next(it)
            before = sys.getprofile()
            events = []

            def other(frame, event, arg):
                events.append(event)
                before(frame, event, arg)

            sys.setprofile(other)
            try:
                assert list(it) == [1]
                assert sys.getprofile() is other
                events.clear()
                wait(0)
                assert events
            finally:
                sys.setprofile(None)
            (row,) = drained()
        assert row.suspended_ns > 0
        assert row.flags == 0

    @pytest.mark.parametrize("case", ["kept", "calls ours", "unset", "set again"])
    def test_missed_suspensions_are_noted(self, case):
        running = session.start(Options())
        it = numbers(2)
        next(it)
        before = sys.getprofile()

        def other(frame, event, arg):
            before(frame, event, arg)

        try:
            if case == "calls ours":
                sys.setprofile(other)
            elif case != "kept":
                sys.setprofile(None)
            next(it)
            if case == "set again":
                assert list(numbers(2)) == [0, 1]
                assert sys.getprofile() is before
            notes = running.stop().info["notes"]
        finally:
            sys.setprofile(None)
        missed = any("Some suspensions" in note for note in notes)
        assert missed is (case in ("unset", "set again"))

    def test_an_audit_hook_that_forbids_it_is_told_once(self):
        code = (
            "import sys, warnings\n"
            "import epprof_nb\n"
            "refuse = False\n"
            "def hook(event, args):\n"
            "    if refuse and event == 'sys.setprofile': raise RuntimeError('no profilers')\n"
            "sys.addaudithook(hook)\n"
            "def numbers():\n"
            "    for i in range(9):\n"
            "        with epprof_nb.op('gen'):\n"
            "            yield i\n"
            "with epprof_nb.profile() as p:\n"
            "    refuse = sys.argv[1] == 'set'\n"
            "    it = numbers()\n"
            "    next(it)\n"
            "    refuse = True\n"
            "    list(it)\n"
            "    list(map(str, range(9)))\n"
            "print(len(p.ops), sys.getprofile() is not None)\n"
        )
        for refused, said, stays in (("set", 1, False), ("unset", 0, True)):
            done = subprocess.run(
                [sys.executable, "-c", code, refused], capture_output=True, text=True, check=True
            )
            assert done.stdout.split() == ["9", str(stays)]
            assert done.stderr.count("RuntimeWarning: epprof_nb cannot see") == said
            assert done.stderr.count("Exception ignored in PyEval_SetProfile") == 1

    def test_another_profiler_is_left_alone(self):
        def other(frame, event, arg):
            pass

        sys.setprofile(other)
        try:
            with recording():
                with pytest.warns(RuntimeWarning, match="another profile function"):
                    assert list(numbers(2)) == [0, 1]
                assert sys.getprofile() is other
        finally:
            sys.setprofile(None)


def test_an_interrupt_reaches_the_generator_that_resumes():
    # Like CPython's test_generators.SignalAndYieldFromTest: the signal is pending at a resumption.
    testcapi = pytest.importorskip("_testcapi")

    def outer():
        with op("outer"):
            return (yield from inner())

    def inner():
        with op("inner"):
            try:
                yield
            except KeyboardInterrupt:
                return "caught inside"
            return "not interrupted"

    with recording():
        it = outer()
        it.send(None)
        with pytest.raises(StopIteration, match="caught inside"):
            testcapi.raise_SIGINT_then_send_None(it)
        assert _native.depth() == 0
        assert all(row.flags == 0 for row in drained())
