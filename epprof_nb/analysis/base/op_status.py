"""Masks of the ops that ran in the profile, and of the ops with a recorded host time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.data.table import Table


def ran(ops: Table) -> BoolArray:
    """Return a mask of the ops that ran in the profile.

    An op of an earlier profile is in the table because it captured a CUDA graph.
    """
    return ~ops.names("status").equals("earlier")


def has_host_time(ops: Table) -> BoolArray:
    """Return a mask of the ops that ran and whose duration was recorded.

    The duration of a node that a launch sequence identified covers only its API calls.
    """
    return ran(ops) & ~ops.names("status").equals("learned")
