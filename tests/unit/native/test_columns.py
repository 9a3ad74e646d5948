"""Columns of the native core: views of its memory, which live as long as something uses them."""

import gc

import numpy as np
import pytest

from epprof_nb import _native


def test_columns_are_read_only_and_outlive_their_drain(recording):
    name = _native.intern("x")
    ids = [_native.push(name, 0) for _ in range(100)]
    for op_id in reversed(ids):
        assert _native.pop(op_id)
    drained = _native.drain_ops(_native.now_ns(), open_too=False)
    of_ids, of_flags = (np.frombuffer(drained[name], kind) for name, kind in
                        (("op_id", np.uint64), ("flags", np.uint16)))  # fmt: skip
    del drained
    gc.collect()
    _native.drain_ops(_native.now_ns(), open_too=False)
    assert sorted(of_ids.tolist()) == ids
    assert of_flags.tolist() == [0] * 100
    with pytest.raises(ValueError, match="read-only"):
        of_ids[0] = 1


def test_a_log_without_rows_has_columns_without_rows(recording):
    drained = _native.drain_ops(_native.now_ns(), open_too=False)
    assert np.frombuffer(drained["op_id"], np.uint64).tolist() == []
