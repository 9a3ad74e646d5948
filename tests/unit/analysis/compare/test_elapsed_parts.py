"""Causes of the change of the elapsed time: contributions, their order, and the table."""

import re

import numpy as np
import pytest

from epprof_nb import compare
from tests.helpers.tiny import call, kernel, line, op, profile, rows

MS = 1_000_000
DEVICES = [{"device_id": 0, "name": "GPU X", "kind": "gpu"}]


def recording(steps, *, repeats=12, seed=0, tail=False):
    """A recording of statements that run in each repeat, one after the other.

    A step is a name, its host time, the device time of the kernel that it launches (0 for none),
    and whether it waits for the device. With `tail`, the code does not wait for its last kernel.
    """
    rng = np.random.default_rng(seed)
    ops = [op(1, "In[1]", 0, 10**12, op_type="cell", category="cell")]
    work, calls, bounds = [], [], []
    now, free = 100, 0
    for repeat in range(repeats):
        begin = now
        for at, (name, *times, waits) in enumerate(steps, 1):
            number = len(ops) + 1
            host_ns, device_ns = (round(ns * np.exp(0.002 * rng.standard_normal())) for ns in times)
            start, now = now, now + host_ns
            if device_ns:
                begun = max(free, start)
                free = begun + device_ns
                work.append(kernel(begun, free, number, name=f"kernel of {name}", repeat=repeat))
            if waits and free > now:
                calls.append(
                    call(now, free, name="cudaStreamSynchronize", op_id=number, repeat=repeat)
                )
                now = free
            ops.append(line(number, at, start, now, 1, repeat=repeat) | {"name": name})
        bounds.append([begin, now])
        if tail:
            now = max(now, free)
    info = {"repeats": bounds, "wall_ns": now, "devices": DEVICES}
    return profile(ops, work, calls, info=info)


def first_row(result):
    """The cells of the first row of the shown table."""
    table = [line for line in result.to_markdown().splitlines() if line.startswith("| ")]
    return dict(zip(*([cell.strip() for cell in text.split("|")[1:-1]] for text in table[:2]),
                    strict=True))  # fmt: skip


def whole_change(result):
    total = result._result.total
    return total.after_ns - total.before_ns


def test_a_faster_loader_is_first_with_its_elapsed_time():
    # It copies to the device as well, which takes a little longer.
    def loop(load, copy, seed):
        return recording(
            [("x = load()", load, copy, False), ("y = model(x)", 10, 20 * MS, True)], seed=seed
        )

    result = compare(loop(15 * MS, 338_000, 0), loop(10 * MS, 352_000, 1))
    first = first_row(result)
    assert first["op"] == "`x = load()`"
    assert first["elapsed time"].startswith("15.0 ms")
    assert first["verdict"] == "faster"
    assert first["device time"].startswith(("338 µs", "337 µs", "339 µs"))
    assert float(first["contribution"].split()[0]) == pytest.approx(-5, abs=0.1)
    assert "Changed: `x = load()` -" in result.reason
    assert result.ops["contribution_ns"].sum() == pytest.approx(whole_change(result), rel=0.02)


def test_a_removed_synchronization_is_first_though_device_times_grow():
    def loop(device, wait, seed):
        steps = [("launch()", 10_000, device, False), ("wait()", 10_000, 0, True)]
        more = [("prepare()", 20 * MS, 0, False), ("y.get()", 10_000, 0, True)]
        return recording([*(steps if wait else steps[:1]), *more], seed=seed)

    result = compare(loop(20 * MS, True, 0), loop(22 * MS, False, 1))
    assert result.verdict == "faster"
    first = first_row(result)
    assert (first["op"], first["verdict"]) == ("`wait()`", "removed")
    ops = result.ops.set_index("name")
    assert ops.loc["wait()", "contribution_ns"] == pytest.approx(-20 * MS, rel=0.02)
    assert ops["contribution_ns"].sum() == pytest.approx(whole_change(result), abs=0.2 * MS)
    # The time for which the last statement waits now is the longer kernel's.
    html = result._repr_mimebundle_()["text/html"]
    assert re.search('<td class="epprof-faster"[^>]*>removed</td>', html)
    assert ops["device_contribution_ns"].sum() == pytest.approx(0, abs=10)


def test_a_slower_kernel_is_the_cause_of_a_longer_wait():
    def loop(device, seed):
        steps = [("y = model(x)", 20_000, device, False), ("y.get()", 10_000, 0, True)]
        return recording(steps, seed=seed)

    result = compare(loop(20 * MS, 0), loop(30 * MS, 1))
    first = first_row(result)
    assert first["op"] == "`y = model(x)`"
    assert first["verdict"] == "slower (device time)"
    assert "+50 %" in first["device time"]
    ops = rows(result.ops)
    assert ops["y = model(x)"]["contribution_ns"] == pytest.approx(10 * MS, rel=0.05)
    assert abs(ops["y.get()"]["contribution_ns"]) < 0.1 * MS
    assert ops["y.get()"]["elapsed_verdict"] == "slower"
    assert "slower (waits for the device)" in repr(result)


def test_a_device_time_with_another_verdict_than_its_row_has_its_own():
    def loop(host, device, seed):
        steps = [("launch()", host, device, False), ("prepare()", 20 * MS, 0, False)]
        return recording(steps, seed=seed)

    result = compare(loop(15 * MS, 7 * MS, 0), loop(10 * MS, 9 * MS, 1))
    first = first_row(result)
    assert first["verdict"] == "faster"
    assert first["device time"].endswith(" %: slower")


def test_work_after_the_end_of_the_code_is_elapsed_time_of_its_op():
    def loop(device, seed):
        steps = [("launch()", 20_000, device, False), ("sleep()", 5 * MS, 0, False)]
        return recording(steps, seed=seed, tail=True)

    result = compare(loop(20 * MS, 0), loop(30 * MS, 1))
    assert first_row(result)["op"] == "`launch()`"
    launch = rows(result.ops)["launch()"]
    assert launch["contribution_ns"] == pytest.approx(10 * MS, rel=0.02)
    assert launch["elapsed_verdict"] == "slower"
    assert launch["host_after_ns"] < 30_000


def test_the_time_of_an_op_that_contains_another_counts_once():
    def nested(inner):
        ops = [op(1, "In[1]", 0, 10**12, op_type="cell", category="cell")]
        bounds, now = [], 100
        for repeat in range(12):
            number, begin = len(ops) + 1, now
            now += 2 * MS + inner
            ops.append(line(number, 1, begin, now, 1, repeat=repeat) | {"name": "for x in xs:"})
            ops.append(
                line(number + 1, 2, begin + MS, now - MS, number, repeat=repeat) | {"name": "f(x)"}
            )
            bounds.append([begin, now])
        return profile(ops, info={"repeats": bounds, "wall_ns": now})

    result = compare(nested(4 * MS), nested(6 * MS))
    ops = rows(result.ops)
    assert ops["f(x)"]["contribution_ns"] == 2 * MS
    assert ops["for x in xs:"]["contribution_ns"] == 0
    assert ops["for x in xs:"]["elapsed_after_ns"] == 8 * MS


def test_the_rows_that_are_not_shown_say_what_they_contribute():
    old, new = (
        recording([(f"step_{i}()", ns, 0, False) for i in range(20)]) for ns in (4 * MS, 6 * MS)
    )
    table = [
        [cell.strip() for cell in text.split("|")[1:-1]]
        for text in compare(old, new).to_markdown().splitlines() if text.startswith("| ")
    ]  # fmt: skip
    assert [row[0] for row in table[-2:]] == ["8 more rows", "whole repeat"]
    adds = [float(row[2].removesuffix(" ms")) for row in table[1:]]
    assert sum(adds[:-1]) == pytest.approx(40, rel=0.01)
    assert adds[-1] == pytest.approx(40, rel=0.01)


def test_time_outside_of_all_ops_is_named():
    def with_gap(gap):
        ops = [op(1, "In[1]", 0, 10**12, op_type="cell", category="cell")]
        bounds, now = [], 100
        for repeat in range(12):
            begin = now
            ops.append(line(len(ops) + 1, 1, now, now + MS, 1, repeat=repeat))
            now += MS + gap
            bounds.append([begin, now])
        return profile(ops, info={"repeats": bounds, "wall_ns": now})

    text = compare(with_gap(MS), with_gap(3 * MS)).to_markdown()
    [rest] = [line for line in text.splitlines() if line.startswith("| not in any op")]
    assert "+2.00 ms" in rest


def test_an_op_on_another_thread_has_host_time_alone():
    def loading(load):
        ops, bounds = [op(1, "In[1]", 0, 10**12, op_type="cell", category="cell")], []
        for repeat in range(12):
            begin, number = repeat * 30 * MS, len(ops) + 1
            ops.append(line(number, 1, begin, begin + load, 1, repeat=repeat) | {"name": "next()"})
            worker = {"thread_id": 2, "repeat": repeat}
            ops.append(op(number + 1, "load", begin, begin + load - MS, **worker))
            bounds.append([begin, begin + load])
        return profile(ops, info={"repeats": bounds, "wall_ns": 400 * MS})

    result = compare(loading(20 * MS), loading(10 * MS))
    load = rows(result.ops)["load"]
    assert load["contribution_ns"] == 0
    assert np.isnan(load["elapsed_change"])
    [text] = [row for row in result.to_markdown().splitlines() if row.startswith("| `load`")]
    cells = [cell.strip() for cell in text.split("|")[1:-1]]
    arrow = "\N{RIGHTWARDS ARROW}"
    assert cells == ["`load`", "", "", "", "", "faster (host time)", f"19.0 ms {arrow} 9.00 ms"]
    assert first_row(result)["op"] == "`next()`"


def test_a_wait_of_another_thread_moves_no_contribution():
    def waiting(device):
        ops, bounds = [op(1, "In[1]", 0, 10**12, op_type="cell", category="cell")], []
        work, calls = [], []
        for repeat in range(12):
            begin, number = repeat * 30 * MS, len(ops) + 1
            end, done, of = begin + 20 * MS, begin + device, {"repeat": repeat}
            ops.append(line(number, 1, begin, end, 1, **of) | {"name": "launch()"})
            ops.append(op(number + 1, "wait", begin, done, thread_id=2, **of))
            work.append(kernel(begin, done, number, **of))
            wait = {"name": "cudaStreamSynchronize", "op_id": number + 1, "thread_id": 2}
            calls.append(call(begin, done, **wait, **of))
            bounds.append([begin, end])
        return profile(ops, work, calls, info={"repeats": bounds, "wall_ns": 400 * MS})

    ops = rows(compare(waiting(5 * MS), waiting(9 * MS)).ops)
    assert ops["launch()"]["verdict"] == "slower"
    assert ops["launch()"]["contribution_ns"] == ops["wait"]["contribution_ns"] == 0


def test_the_change_of_single_runs_is_that_of_the_times_that_are_shown():
    def run(ns):
        ops = [op(1, "work", 0, ns, repeat=None)]
        return profile(ops, info={"wall_ns": ns, "code_ns": ns})

    old = [run(MS + 1000 * i) for i in range(11)] + [run(500 * MS)]
    new = [run(2 * MS + 1000 * i) for i in range(12)]
    result = compare(old, new)
    total = result._result.total
    assert total.before_ns == pytest.approx(MS, rel=0.01)
    assert result.change == pytest.approx(total.after_ns / total.before_ns - 1)


def test_every_output_has_the_same_cells():
    old = recording([("x = load()", 5 * MS, 1 * MS, False), ("y.get()", 10, 0, True)])
    new = recording([("x = load()", 4 * MS, 1 * MS, False), ("y.get()", 10, 0, True)], seed=1)
    result = compare(old, new)
    bundle = result._repr_mimebundle_()
    cells = [
        cell.strip() for text in result.to_markdown().splitlines() if text.startswith("| ")
        for cell in text.split("|")[2:-1] if cell.strip()
    ]  # fmt: skip
    html = bundle["text/html"].replace("\N{NO-BREAK SPACE}", " ")
    for cell in cells:
        assert cell in bundle["text/plain"]
        assert f">{cell}<" in html
