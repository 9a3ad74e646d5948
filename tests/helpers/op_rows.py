"""Rows of the ops that the native core has recorded, as the recording service joins them."""

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.session.ops_table import ops_table
from epprof_nb.recording.session.recording import Batch


def taken(*batches):
    """The op rows recorded since the last call, by name."""
    raw = _native.drain_ops(_native.now_ns(), open_too=True)
    table, lost = ops_table([*batches, Batch(raw, {}, [], 0)])
    return table.to_frame(), lost


def statements(*parents_and_names):
    """Add statements to the native core's table: pairs of a parent and a name."""
    parents = np.array([p for p, _ in parents_and_names], np.int32)
    names = np.array([_native.intern(n) for _, n in parents_and_names], np.uint32)
    return _native.add_statements(parents.tobytes(), names.tobytes())
