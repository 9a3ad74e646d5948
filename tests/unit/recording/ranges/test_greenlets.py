"""Each greenlet has its own op stack, which is its thread's while the greenlet runs."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import greenlet
import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.recording.statements.markers import install_markers
from tests.helpers.marked_cells import marked

if TYPE_CHECKING:
    from collections.abc import Callable


def launch() -> None:
    host.launch(np.add, 1, 1, host.empty((4,), "f4"))


def kernels(prof) -> Counter:
    """Count kernels by the name of their op and their attribution."""
    names = prof.ops["name"].to_dict()
    rows = prof.activities
    of = [names.get(op) for op in rows["op_id"].fillna(0)]
    return Counter(zip(of, rows["attribution"].tolist(), strict=True))


def in_turn(*functions: Callable[[], None]) -> None:
    """Run greenlets round robin; each calls `pause` to let the next one run."""
    todo = [greenlet.greenlet(function) for function in functions]
    while todo:
        for task in todo:
            task.switch()
        todo = [task for task in todo if not task.dead]


def pause() -> None:
    greenlet.getcurrent().parent.switch()


def job(name: str, count: int) -> Callable[[], None]:
    def run() -> None:
        with epprof_nb.op(name):
            for _ in range(count):
                launch()
                pause()

    return run


def test_interleaved_jobs_keep_their_kernels():
    with epprof_nb.profile() as prof:
        in_turn(job("a", 30), job("b", 5))
    assert kernels(prof) == {("a", "stack"): 30, ("b", "stack"): 5}


def test_each_of_a_hundred_greenlets_has_its_kernel():
    def late(name: str) -> None:
        with epprof_nb.op(name):
            pause()
            launch()

    with epprof_nb.profile() as prof:
        in_turn(*(partial(late, f"job {i}") for i in range(100)))
    assert kernels(prof) == {(f"job {i}", "stack"): 1 for i in range(100)}


def test_work_of_a_greenlet_without_an_op_is_what_the_cells_greenlet_waits_for():
    def plain() -> None:
        for _ in range(5):
            launch()
            pause()

    with epprof_nb.profile() as prof:
        with epprof_nb.op("wait"):
            in_turn(job("a", 7), plain)
        in_turn(job("b", 3), plain)
    assert kernels(prof) == {
        ("a", "stack"): 7, ("b", "stack"): 3, ("wait", "cell"): 5, (None, "none"): 5,
    }  # fmt: skip
    ids = {name: op for op, name in prof.ops["name"].items()}
    parents = prof.ops["parent_op_id"].fillna(0).to_dict()
    assert parents[ids["a"]] == ids["wait"]
    assert parents[ids["b"]] == 0


def test_only_the_cells_greenlet_is_not_suspended_while_others_run():
    with epprof_nb.profile() as prof, epprof_nb.op("wait"):
        in_turn(job("a", 10), job("b", 10))
    of = prof.ops.set_index("name")
    assert of["suspended_ns"]["wait"] == 0
    assert of["duration_ns"]["wait"] == of["end_ns"]["wait"] - of["start_ns"]["wait"]
    for name in ("a", "b"):
        assert of["suspended_ns"][name] > 0
        span = of["end_ns"][name] - of["start_ns"][name]
        assert of["duration_ns"][name] == span - of["suspended_ns"][name]


def test_a_greenlet_from_before_the_session_and_one_that_outlives_it():
    task = greenlet.greenlet(job("early", 3))
    task.switch()
    with epprof_nb.profile() as prof:
        with epprof_nb.op("mine"):
            task.switch()
            launch()
        late = greenlet.greenlet(job("late", 2))
        late.switch()
    # The op of the first one was opened outside of the session.
    assert kernels(prof) == {("mine", "cell"): 1, ("mine", "stack"): 1, ("late", "stack"): 1}
    assert prof.ops.set_index("name")["status"]["late"] == "open"
    with epprof_nb.profile() as after:
        late.switch()
        launch()
    assert kernels(after) == {(None, "none"): 2}


def test_an_op_ends_with_its_greenlet():
    left = epprof_nb.op("left open")

    def leave() -> None:
        left.__enter__()
        launch()

    with epprof_nb.profile() as prof:
        for _ in range(3):  # the next one may get the address of the one before
            in_turn(leave)
            gc.collect()
        in_turn(launch)
    assert kernels(prof) == {("left open", "stack"): 3, (None, "none"): 1}
    assert set(prof.ops["status"]) == {"complete"}


def test_a_greenlet_that_is_collected_ends_its_ops():
    def never_resumed() -> None:
        with epprof_nb.op("collected"):
            launch()
            pause()

    with epprof_nb.profile() as prof:
        task = greenlet.greenlet(never_resumed)
        task.switch()
        del task
        gc.collect()
        launch()
    assert kernels(prof) == {("collected", "stack"): 1, (None, "none"): 1}
    assert set(prof.ops["status"]) == {"complete"}


def test_another_greenlet_may_end_an_op():
    shared, waiting = epprof_nb.op("shared"), epprof_nb.op("of main")

    def opens() -> None:
        shared.__enter__()
        launch()
        pause()
        launch()
        waiting.__exit__(None, None, None)
        launch()

    with epprof_nb.profile() as prof:
        task = greenlet.greenlet(opens)
        task.switch()
        shared.__exit__(None, None, None)
        waiting.__enter__()
        task.switch()
        launch()
    assert kernels(prof) == {
        ("shared", "stack"): 1, ("of main", "cell"): 1, (None, "none"): 2,
    }  # fmt: skip
    assert set(prof.ops["status"]) == {"complete"}


def test_threads_have_greenlets_of_their_own():
    def work(number: int) -> None:
        in_turn(job(f"{number} a", 20), job(f"{number} b", 10))

    with epprof_nb.profile() as prof:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        in_turn(job("main a", 5), job("main b", 3))
        for thread in threads:
            thread.join()
    expected = {(f"{i} {name}", "stack"): n for i in range(4) for name, n in (("a", 20), ("b", 10))}
    assert kernels(prof) == expected | {("main a", "stack"): 5, ("main b", "stack"): 3}


def test_a_switch_by_an_exception_is_a_switch():
    def caught() -> None:
        with epprof_nb.op("caught"):
            try:
                pause()
            except KeyError:
                launch()
                pause()

    with epprof_nb.profile() as prof:
        task = greenlet.greenlet(caught)
        task.switch()
        launch()
        task.throw(KeyError)
        launch()
        with pytest.raises(ZeroDivisionError):
            task.throw(ZeroDivisionError)
        launch()
    assert kernels(prof) == {("caught", "stack"): 1, (None, "none"): 3}


def test_generators_in_greenlets_take_their_ops_along():
    def numbers():
        with epprof_nb.op("generator"):
            for i in range(4):
                launch()
                yield i

    def consume() -> None:
        with epprof_nb.op("consumer"):
            for _ in numbers():
                launch()
                pause()

    with epprof_nb.profile() as prof:
        in_turn(consume, job("other", 4))
    assert kernels(prof) == {
        ("generator", "stack"): 4, ("consumer", "stack"): 4, ("other", "stack"): 4,
    }  # fmt: skip


def test_statements_of_functions_that_greenlets_run():
    source = """
def work(count):
    for _ in range(count):
        launch()
        pause()
in_turn(lambda: work(9), lambda: work(4))
"""
    namespace = {"launch": launch, "pause": pause, "in_turn": in_turn, "__name__": "cell"}
    install_markers(namespace)
    code = compile(marked(source), "<cell>", "exec")
    with epprof_nb.profile() as prof:
        exec(code, namespace)
    assert kernels(prof) == {("launch()", "stack"): 13}
    rows = prof.ops
    loops = rows.index[rows["name"] == "for _ in range(count):"]
    launches = rows[rows["name"] == "launch()"]
    by_loop = Counter(launches["parent_op_id"].tolist())
    assert sorted(by_loop.values()) == [4, 9]
    assert set(by_loop) == set(loops)


def test_a_trace_function_is_called_and_put_back():
    seen = []

    def trace(event, args) -> None:
        seen.append((event, args))

    before = greenlet.settrace(trace)
    try:
        with epprof_nb.profile():
            in_turn(job("a", 2), job("b", 2))
        assert greenlet.gettrace() is trace
    finally:
        greenlet.settrace(before)
    assert [event for event, _ in seen] == ["switch"] * 12
    assert greenlet.gettrace() is None


def test_a_trace_function_set_meanwhile_stays():
    seen = []
    with epprof_nb.profile() as prof:

        def trace(event, args) -> None:
            seen.append(event)
            before(event, args)

        before = greenlet.settrace(trace)
        in_turn(job("a", 3), job("b", 2))
    assert greenlet.gettrace() is trace
    with epprof_nb.profile() as again:
        in_turn(job("a", 3), job("b", 2))
    assert greenlet.gettrace() is trace
    greenlet.settrace(None)
    assert len(seen) == 2 * 14
    for each in (prof, again):
        assert kernels(each) == {("a", "stack"): 3, ("b", "stack"): 2}
        assert each.info["notes"] == []


def test_a_trace_function_that_takes_the_place_of_ours_is_told():
    with epprof_nb.profile() as prof:
        greenlet.settrace(None)
        in_turn(job("a", 3), job("b", 2))
    # The first op that opens in each greenlet shows that it runs.
    assert kernels(prof) == {("a", "stack"): 3, ("b", "stack"): 2}
    (note,) = prof.info["notes"]
    assert "switches of greenlets were not reported" in note
    assert "greenlet.settrace" in note
    assert greenlet.gettrace() is None


def test_a_trace_function_that_fails_reaches_the_program():
    def trace(event, args) -> None:
        raise ArithmeticError(event)

    with epprof_nb.profile():
        before = greenlet.settrace(trace)
        with pytest.raises(ArithmeticError):
            in_turn(job("a", 1))
        greenlet.settrace(before)
    assert greenlet.gettrace() is None


def test_threads_put_their_trace_functions_back():
    found = []
    go_on, done = threading.Event(), threading.Event()

    def work() -> None:
        in_turn(job("a", 2))
        found.append(greenlet.gettrace() is None)
        done.set()
        go_on.wait(60)
        in_turn(job("b", 2))
        found.append(greenlet.gettrace() is None)

    thread = threading.Thread(target=work)
    with epprof_nb.profile():
        thread.start()
        done.wait(60)
    go_on.set()
    thread.join()
    assert found == [False, True]


def test_greenlets_imported_in_the_middle_of_a_session():
    program = """
import gc, sys, numpy as np, epprof_nb
from epprof_nb import host
gc.disable()
x = host.empty((4,), "f4")
assert "greenlet" not in sys.modules
with epprof_nb.profile() as prof:
    with epprof_nb.op("main"):
        import greenlet
        def job(name, count):
            with epprof_nb.op(name):
                for _ in range(count):
                    host.launch(np.add, x, x, x)
                    greenlet.getcurrent().parent.switch()
        a, b = (greenlet.greenlet(job) for _ in range(2))
        a.switch("a", 3), b.switch("b", 2)
        a.switch(), b.switch(), a.switch(), b.switch(), a.switch()
        host.launch(np.add, x, x, x)
table = prof.by_op().set_index("name")
assert table["kernels"].to_dict() == {"main": 6, "a": 3, "b": 2}, table["kernels"].to_dict()
assert not prof.info["notes"], prof.info["notes"]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_programs_without_greenlets_follow_none(monkeypatch):
    monkeypatch.delitem(sys.modules, "greenlet")
    followed = []
    monkeypatch.setattr(_native, "follow_greenlets", followed.append)
    with epprof_nb.profile():
        launch()
    assert followed == []
    assert not [finder for finder in sys.meta_path if getattr(finder, "name", "") == "greenlet"]
