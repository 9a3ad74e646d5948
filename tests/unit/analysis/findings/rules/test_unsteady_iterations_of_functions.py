"""Loops in functions that become slower, found by the launches of their lines."""

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.analysis.steps.launch_loops import launch_loop
from tests.helpers.planted import MS, US, info, of_kind
from tests.helpers.tiny import call, kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

SOURCE = """def run():
    h = zeros()
    for t in range(24):
        h = gru(x[t], h)
        loss = h.mean()
        loss.backward(retain_graph=True)
def gru(x, h):
    a = linear(x)
    return a + linear(h)
"""
FORWARD = ("In[2]:2 model.py:run:4 model.py:gru:8", "In[2]:2 model.py:run:4 model.py:gru:9",
           "In[2]:2 model.py:run:5")  # fmt: skip
BACKWARD = "In[2]:2 model.py:run:6"


def rounds(*counts, launch=50 * US, wait=0):
    """Rounds of a function: three launches of the forward pass, then `counts` of the backward."""
    rows, ids = stack_rows(*FORWARD, BACKWARD)
    work, calls, now = [], [], 0
    for count in counts:
        for stack in [*ids[:-1], *[ids[-1]] * count]:
            number = len(calls)
            calls.append(call(now, now + 5 * US, correlation_id=number, stack_id=stack))
            work.append(kernel(now + 5 * US, now + 40 * US, correlation_id=number, thread_id=1,
                               stack_id=stack))  # fmt: skip
            now += launch
        now += wait
    prof = profile([], work, calls, info=info(now), sources={"model.py": SOURCE})
    with_stacks(prof, rows)
    return prof


def test_a_loop_of_a_function_that_launches_more_and_more_is_found():
    prof = rounds(*(10 * (i + 1) for i in range(24)))
    (found,) = of_kind(prof, "drift")
    loop = "The iterations of the loop at line 4 of `run` (model.py: `h = gru(x[t], h)`)"
    assert found.text.startswith(loop)
    assert "it launched 233 times, the first one 13 times" in found.text
    assert "line 6 of `run` (model.py: `loss.backward(retain_graph=True)`) grew most" in found.text
    assert "`.detach()`" in found.remedy
    # Without growth, 23 rounds take as long as the first one.
    true = prof.info["wall_ns"] - rounds(*[10] * 24).info["wall_ns"]
    assert found.low_ns <= found.gain_ns <= true * 1.01
    assert found.gain_ns == pytest.approx(true, rel=0.2)


def test_a_loop_of_a_function_that_stays_as_fast_is_no_drift():
    assert not of_kind(rounds(*[10] * 24), "drift")


@pytest.mark.parametrize("turns", [1, 2, 10, 11, 30])
def test_turns_of_a_loop_begin_with_its_first_line(turns):
    prof = rounds(*[4] * turns, wait=MS)
    found = launch_loop(ProfileIndex(prof), 10)
    if turns <= 10:  # what ends the last one is not known
        assert found is None
        return
    length = 7 * 50 * US + MS
    assert found.start.tolist() == [i * length for i in range(turns - 1)]
    assert set((found.end - found.start).tolist()) == {length}
    assert found.stack >= 0
    assert iterations(ProfileIndex(prof)).start.tolist() == found.start.tolist()


def test_several_statements_in_one_line_are_one_turn():
    ops = [line(1, 1, 0, 120 * US, name="for i in range(12): x = load(); work(x)")]
    for i in range(12):
        begin = i * 10 * US
        ops.append(line(3 * i + 2, 2, begin, begin + 4 * US, name="x = load()", parent=1))
        ops.append(line(3 * i + 3, 2, begin + 4 * US, begin + 9 * US, name="work(x)", parent=1))
    found = iterations(ProfileIndex(profile(ops, info=info(120 * US))))
    assert found.start.tolist() == [i * 10 * US for i in range(12)]


def test_one_line_that_launches_is_no_loop():
    rows, (stack,) = stack_rows("In[2]:2 model.py:run:4")
    calls = [call(i * MS, i * MS + US, correlation_id=i, stack_id=stack) for i in range(50)]
    prof = profile([], [], calls, info=info(50 * MS), sources={"model.py": SOURCE})
    with_stacks(prof, rows)
    assert launch_loop(ProfileIndex(prof), 10) is None


def test_other_threads_do_not_end_a_turn():
    prof = rounds(*[4] * 20)
    calls = prof.tables["api_calls"]
    thread = np.array(calls["thread_id"])
    thread[5::7] = 2  # a call of the backward pass
    there = profile(
        [],
        [],
        [
            call(int(start), int(end), int(t), stack_id=int(stack))
            for start, end, t, stack in zip(
                calls["start_ns"], calls["end_ns"], thread, calls["stack_id"], strict=True
            )
        ],
        info=prof.info,
        sources={"model.py": SOURCE},
    )
    there.tables["stacks"] = prof.tables["stacks"]
    found = launch_loop(ProfileIndex(there), 10)
    assert found.start.tolist() == launch_loop(ProfileIndex(prof), 10).start.tolist()


def test_of_nested_loops_the_one_of_the_outermost_function_counts():
    """Each turn of `run` calls `gru` twice, which has two lines that launch."""
    rows, ids = stack_rows(
        *(
            f"In[2]:2 model.py:run:{outer} model.py:gru:{inner}"
            for outer in (4, 5)
            for inner in (8, 9)
        )
    )
    calls = [
        call(100 * i, 100 * i + 5, correlation_id=i, stack_id=stack)
        for i, stack in enumerate([*ids] * 20)
    ]
    work = [
        kernel(100 * i + 5, 100 * i + 40, correlation_id=i, stack_id=row["stack_id"])
        for i, row in enumerate(calls)
    ]
    prof = profile([], work, calls, info=info(8_000), sources={"model.py": SOURCE})
    with_stacks(prof, rows)
    found = launch_loop(ProfileIndex(prof), 10)
    assert found.start.tolist() == list(range(0, 7_600, 400))
