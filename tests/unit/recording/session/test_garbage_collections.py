"""Pauses of the garbage collector are ops, those of young generations in one row."""

import gc
import os
import time

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.data.schema import OPS
from epprof_nb.recording.session.garbage_collections import without_own
from tests.helpers.tiny import op, table


def pauses(prof):
    return prof.ops[prof.ops["op_type"] == "gc"]


def test_a_full_collection_is_an_op_of_the_op_around_it():
    with epprof_nb.profile() as prof:
        with epprof_nb.op("step"):
            gc.collect()
        with epprof_nb.op("other"):
            pass
    (step,) = prof.ops.index[prof.ops["name"] == "step"]
    found = pauses(prof)
    assert found["name"].tolist() == ["garbage collection"]
    assert found["parent_op_id"].tolist() == [step]
    assert found["args"].tolist() == [{"generations": [2]}]
    assert found["start_ns"].iloc[0] >= prof.ops.at[step, "start_ns"]
    assert found["end_ns"].iloc[0] <= prof.ops.at[step, "end_ns"]


def test_pauses_of_young_generations_share_a_row():
    with epprof_nb.profile() as prof:
        for name in ("first", "second"):
            with epprof_nb.op(name):
                for _ in range(5):
                    gc.collect(0)
                    gc.collect(1)
    found = pauses(prof)
    found = found[found["count"] > 1]  # a suspended process may make a pause long
    assert len(found) <= 2
    assert found["count"].sum() + (pauses(prof)["count"] == 1).sum() == 20
    assert (found["duration_ns"] <= found["end_ns"] - found["start_ns"]).all()


def test_pauses_that_are_far_apart_have_a_row_each():
    with epprof_nb.profile() as prof, epprof_nb.op("waits"):
        for _ in range(3):
            gc.collect(0)
            time.sleep(0.02)
    found = pauses(prof)
    assert found["count"].tolist() == [1, 1, 1]
    assert (found["end_ns"] - found["start_ns"] == found["duration_ns"]).all()


def test_automatic_collections_are_recorded():
    threshold = gc.get_threshold()
    gc.enable()
    gc.set_threshold(100)
    try:
        with epprof_nb.profile() as prof:
            kept = [[number] for number in range(5_000)]
    finally:
        gc.set_threshold(*threshold)
        gc.disable()
    assert len(kept) == 5_000
    assert pauses(prof)["count"].sum() >= 10


def test_nothing_is_left_behind_and_cleared_callbacks_are_no_error():
    before = list(gc.callbacks)
    with epprof_nb.profile():
        assert gc.callbacks.count(_native.on_collection) == 1
        with epprof_nb.profile():
            assert gc.callbacks.count(_native.on_collection) == 1
    assert gc.callbacks == before
    try:
        with epprof_nb.profile() as prof:
            gc.callbacks.clear()
            gc.collect()
    finally:
        gc.callbacks[:] = before
    assert pauses(prof).empty


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork beside other threads
def test_a_forked_child_records_nothing():
    with epprof_nb.profile() as prof:
        child = os.fork()
        if not child:
            gc.collect()
            os._exit(_native.on_collection in gc.callbacks)
        assert os.waitpid(child, 0)[1] == 0
    assert pauses(prof).empty


def test_a_callback_with_other_arguments_records_nothing():
    with epprof_nb.profile() as prof:
        for arguments in ((), ("stop",), ("stop", {}), (1, {}), ("start", None), ("stop", None)):
            _native.on_collection(*arguments)
    assert len(pauses(prof)) == 1  # the last pair


def test_pauses_before_and_after_the_code_are_left_out_and_other_ops_kept():
    ops = table(OPS, [
        op(1, "open before", 0, 10),
        op(2, "garbage collection", 5, 19, op_type="gc"),
        op(3, "garbage collection", 15, 20, op_type="gc"),
        op(4, "garbage collection", 29, 31, op_type="gc"),
        op(5, "garbage collection", 30, 31, op_type="gc"),
        op(6, "later", 30, 31),
    ])  # fmt: skip
    assert without_own(ops, 20, 30)["op_id"].tolist() == [1, 3, 4, 6]
