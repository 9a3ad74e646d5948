"""Findings on garbage collection: planted pauses, and programs that collect."""

import gc

import numpy as np
import pytest

import epprof_nb
from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import MS, info, of_kind, repeats, steady
from tests.helpers.tiny import call, kernel, line, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks


def pause(op_id, start, end, parent, **more):
    return op(op_id, "garbage collection", start, end, parent, op_type="gc", source="python",
              category="framework", args={"generations": [2]}, **more)  # fmt: skip


def looping(length=20 * MS, rounds=5, **more):
    """Rounds of 30 ms: a launch of 5 ms of work, and a pause of `length` in line 3."""
    ops, work, calls = [], [], []
    for i in range(rounds):
        t, n = 30 * MS * i, 10 * i
        ops += [line(n + 1, 2, t, t + MS), line(n + 2, 3, t + MS, t + 30 * MS)]
        if length:
            ops.append(pause(n + 3, t + 2 * MS, t + 2 * MS + length, n + 2, **more))
        work.append(kernel(t + MS, t + 6 * MS, n + 1, correlation_id=i + 1, thread_id=1))
        calls.append(call(t, t + MS // 10, correlation_id=i + 1, op_id=n + 1))
    source = "for b in data:\n    y = f(b)\n    tidy()\n"
    return profile(ops, work, calls, info=info(30 * MS * rounds), sources={"In[1]": source})


def test_pauses_are_named_with_their_line():
    (found,) = of_kind(looping(), "garbage collection")
    assert found.text == (
        "Python's garbage collector paused the program for 100 ms in 5 collections, mostly in "
        "line 3 (`tidy()`)."
    )
    assert found.gain_ns == pytest.approx(100 * MS, rel=0.01)
    assert found.low_ns < found.gain_ns
    assert "gc.freeze()" in found.remedy
    assert not of_kind(looping(), "idle")


def test_a_loop_in_a_function_is_named_by_its_sampled_line():
    """The only statement runs for the whole program."""
    found = with_samples(looping(), [(30 * MS * i + k * 4 * MS, "In[1]:3 data.py:tidy:7", 4 * MS)
                                     for i in range(5) for k in range(1, 5)])  # fmt: skip
    (finding,) = of_kind(found, "garbage collection")
    assert finding.text.endswith("in 5 collections, mostly in `tidy` (data.py:7).")
    few = with_samples(looping(), [(4 * MS, "In[1]:3 data.py:tidy:7", 4 * MS)])
    (finding,) = of_kind(few, "garbage collection")
    assert finding.text.endswith("mostly in line 3 (`tidy()`).")


def with_samples(prof, samples):
    rows, stacks = stack_rows(*(stack for _, stack, _ in samples))
    found = with_stacks(prof, rows)
    found.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [{"start_ns": time, "stack_id": stack, "interval_ns": weight, "thread_id": 1}
         for (time, _, weight), stack in zip(samples, stacks, strict=True)],
    )  # fmt: skip
    return found


def test_a_program_without_pauses_has_no_finding():
    assert not of_kind(looping(length=0), "garbage collection")
    assert not of_kind(looping(length=MS // 10), "garbage collection")


@pytest.mark.parametrize(
    ("start", "count"), [(-9 * MS, 0), (-2 * MS, 1), (20 * MS, 1), (31 * MS, 0)]
)
def test_pauses_of_the_profilers_own_work_are_left_out(start, count):
    """The profiler collects while it starts and stops, before and after the 30 ms of a profile."""
    ops = [line(1, 1, 0, 30 * MS), pause(2, start, start + 8 * MS, -1)]
    prof = profile(ops, info=info(30 * MS), sources={"In[1]": "a()\n"})
    assert len(of_kind(prof, "garbage collection")) == count


def test_pauses_on_the_thread_of_a_cell_before_and_after_it_are_left_out():
    cell = op(1, "In[1]", 10 * MS, 90 * MS, op_type="cell", category="cell")
    outside = [pause(2, MS, 9 * MS, -1), pause(3, 91 * MS, 98 * MS, -1)]
    ops = [cell, *outside, line(4, 2, 10 * MS, 90 * MS, 1), pause(5, 20 * MS, 40 * MS, 4)]
    prof = profile(ops, info=info(100 * MS), sources={"In[1]": "\nx = f()\n"})
    (found,) = of_kind(prof, "garbage collection")
    assert "paused the program for 20.0 ms in 1 collection" in found.text


def test_pauses_while_the_device_works_save_only_the_idle_time():
    """A kernel of 25 ms runs during the pause of 20 ms, and 4 ms of it are idle."""
    ops = [line(1, 2, 0, 30 * MS), pause(2, MS, 21 * MS, 1)]
    work = [kernel(MS // 2, 17 * MS, 1, correlation_id=1, thread_id=1),
            kernel(22 * MS, 29 * MS, 1, correlation_id=2, thread_id=1)]  # fmt: skip
    sync = call(22 * MS, 29 * MS, name="cuCtxSynchronize", correlation_id=3, op_id=1)
    calls = [call(0, MS // 2, correlation_id=1, op_id=1),
             call(21 * MS, 22 * MS, correlation_id=2, op_id=1), sync]  # fmt: skip
    prof = profile(ops, work, calls, info=info(29 * MS), sources={"In[1]": "a\nb()\n"})
    (found,) = of_kind(prof, "garbage collection")
    assert found.gain_ns == pytest.approx(5 * MS, abs=MS // 10)


def test_coalesced_pauses_count_with_their_sum():
    prof = looping(length=20 * MS, duration_ns=2 * MS, count=40)
    (found,) = of_kind(prof, "garbage collection")
    assert "10.0 ms in 200 collections" in found.text
    assert found.gain_ns == pytest.approx(10 * MS, rel=0.01)


def with_slow_repeats(extra):
    """Steady repeats with two long ones; `extra(number, start)` makes ops of each of them."""
    walls = np.array(steady(), np.int64)
    walls[[8, 14]] += 20 * MS
    starts = np.cumsum(walls) - walls
    prof = repeats(walls.tolist())
    ops = [line(1, 1, 0, int(walls.sum()))]
    for number in (8, 14):
        ops.append(extra(100 + number, int(starts[number])))
    work = [kernel(s, e, 1, repeat=i)
            for i, (s, e) in enumerate(prof.info["repeats"])]  # fmt: skip
    return profile(ops, work, info=prof.info)


def test_garbage_collection_is_a_reason_of_outliers():
    paused = with_slow_repeats(lambda n, t: pause(n, t + MS, t + 20 * MS, 1))
    (found,) = of_kind(paused, "garbage collection") or of_kind(paused, "outliers")
    assert "38.0 ms" in found.text
    other = with_slow_repeats(lambda n, t: op(n, "load", t + MS, t + 20 * MS, 1))
    (found,) = of_kind(other, "outliers")
    assert "garbage" not in found.text + found.remedy


def test_recording_of_nodes_makes_no_outliers():
    def run(n, t, *, nodes):
        args = {"nodes": nodes, "call_ns": 28 * MS, "unprofiled_ns": 9 * MS}
        return op(n, "model_run", t + MS, t + 29 * MS, 1, category="session", op_type="run",
                  args=args, session=1)  # fmt: skip

    assert not of_kind(with_slow_repeats(lambda n, t: run(n, t, nodes="recorded")), "outliers")
    (found,) = of_kind(with_slow_repeats(lambda n, t: run(n, t, nodes="not recorded")), "outliers")
    assert "garbage" not in found.text


def test_pauses_of_a_preparation_do_not_count():
    """Imports, and what a script does before its first step."""
    ops = [line(1, 1, 0, 40 * MS, name="import torch"), pause(2, MS, 30 * MS, 1),
           line(3, 2, 40 * MS, 80 * MS), pause(4, 45 * MS, 75 * MS, 3)]  # fmt: skip
    steps = [[0, 80 * MS], *([80 * MS + MS * i, 81 * MS + MS * i] for i in range(4))]
    wall = info(84 * MS)
    assert "30.0 ms in 1 coll" in of_kind(profile(ops, info=wall), "garbage collection")[0].text
    wall |= {"repeats": steps, "first_step": 0}
    assert not of_kind(profile(ops, info=wall), "garbage collection")
    ops.append(pause(5, 82 * MS, 84 * MS, 3))
    assert "2.00 ms in 1 coll" in of_kind(profile(ops, info=wall), "garbage collection")[0].text


# Programs. Each keeps many objects, so that a full collection takes far longer than the rest.


def tidy_up(objects):
    del objects[:100]
    gc.collect()


def cache_of_frames(objects):
    objects.append({"self": objects})
    for _ in range(2):
        gc.collect(2)


def parsed_records(objects):
    """Allocates so much that Python collects by itself."""
    records = [{"id": [number]} for number in range(60_000)]
    assert len(records) + len(objects) > 60_000


@pytest.mark.parametrize("program", [tidy_up, cache_of_frames, parsed_records])
def test_programs_that_collect_get_the_finding_and_cured_ones_do_not(program):
    objects = [[{"n": number}] for number in range(150_000)]
    threshold = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    gc.enable()
    try:
        with epprof_nb.profile() as slow:
            for _ in range(3):
                program(objects)
    finally:
        gc.disable()
        gc.set_threshold(*threshold)
    gc.freeze()
    try:
        with epprof_nb.profile() as cured:
            for _ in range(3):
                if program is parsed_records:
                    program(objects)
                sum(number * number for number in range(200_000))
    finally:
        gc.unfreeze()
    (found,) = of_kind(slow, "garbage collection")
    assert found.gain_ns > 0.05 * slow.info["wall_ns"]
    assert not of_kind(cured, "garbage collection")
