"""Ops of coroutines that take turns on one thread: their saving is right or missing."""

import asyncio

import pandas as pd
import pytest

import epprof_nb
from tests.helpers.planted import info
from tests.helpers.tiny import op, profile


def planted(*tasks):
    """A loop in which coroutines run; a task is its name, start, end and suspended time."""
    ops = [op(1, "loop", 0, 1_000, op_type="cell")]
    for number, (name, start, end, suspended, *more) in enumerate(tasks, 2):
        parent = more[0] if more else 1
        row = op(number, name, start, end, parent, suspended_ns=suspended)
        ops.append({**row, "duration_ns": end - start - suspended})
    return profile(ops, info=info(1_000, cell="In[1]"))


def saving(prof, name, factor=0.0):
    row = prof.what_if({name: factor}).iloc[0]
    value = row["saving_ns"]
    return row["saving_low_ns"], None if value is pd.NA else value, row["saving_high_ns"]


def by_op(prof):
    return prof.critical_path(by="op").set_index("name")["saving_ns"]


def test_ops_that_take_turns_have_bounds_only():
    prof = planted(("a", 100, 500, 200), ("b", 200, 700, 250))
    assert saving(prof, "a") == (0, None, 400)
    assert saving(prof, "b") == (0, None, 500)
    assert saving(prof, "b", 1.5)[:2] == (-250, None)
    assert by_op(prof)[["a", "b"]].isna().all()
    assert by_op(prof)["loop"] == 1_000
    assert saving(prof, "loop") == (1_000, 1_000, 1_000)
    frame = prof.what_if({"a": 0, "b": 0})
    assert frame["wall_ns"].isna().all()
    assert frame["limit"].isna().all()


def test_an_op_that_runs_while_another_one_is_suspended_is_known():
    prof = planted(("a", 100, 500, 200), ("b", 200, 400, 0))
    assert saving(prof, "b") == (200, 200, 200)
    assert saving(prof, "a") == (0, None, 400)


def test_an_op_that_was_suspended_alone_is_known():
    prof = planted(("a", 100, 500, 300), ("b", 500, 700, 150), ("of b", 550, 600, 40, 3))
    assert saving(prof, "a") == (0, 400, 400)
    assert saving(prof, "b") == (0, 200, 200)
    assert saving(prof, "of b") == (0, 50, 50)


def test_threads_do_not_take_turns():
    ops = [
        op(1, "loop", 0, 1_000, op_type="cell"),
        op(2, "a", 100, 500, 1, suspended_ns=300),
        op(3, "b", 200, 400, thread_id=2),
    ]
    assert saving(profile(ops, info=info(1_000, cell="In[1]")), "a") == (0, 400, 400)


@pytest.mark.parametrize("at_once", [True, False])
def test_recorded_coroutines(at_once):
    async def work(name):
        with epprof_nb.op(name):
            for _ in range(3):
                await asyncio.sleep(0)

    async def both():
        if at_once:
            await asyncio.gather(work("a"), work("b"))
        else:
            await work("a")
            await work("b")

    with epprof_nb.profile() as prof, epprof_nb.op("all"):
        asyncio.run(both())
    frame = prof.what_if({"a": 0, "b": 0, "all": 0}).set_index("changed")
    assert frame.loc[["a", "b"], "saving_ns"].isna().tolist() == [at_once, at_once]
    assert not frame["saving_ns"].isna()["all"]
