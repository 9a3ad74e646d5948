"""Masks of the ops that ran in the profile, and of the ops with a recorded host time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


def ran(ops: Table) -> BoolArray:
    """Return a mask of the ops that ran in the profile.

    An op of an earlier profile is in the table because it captured a CUDA graph.
    """
    return ~ops.names("status").equals("earlier")


def host_times(ops: Table) -> IntArray:
    """Return the duration of each op (ns), 0 without a recorded one; not to be written to."""
    known, duration_ns = has_host_time(ops), ops["duration_ns"]
    return duration_ns if known.all() else np.where(known, duration_ns, 0)


def has_host_time(ops: Table) -> BoolArray:
    """Return a mask of the ops that ran and whose duration was recorded.

    The duration of a node that a launch sequence identified covers only its API calls.
    """
    return ran(ops) & ~ops.names("status").equals("learned")
