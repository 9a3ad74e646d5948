"""Rows of the device work that CUPTI records, for tools that write it into traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.data.schema import ACTIVITIES, API_CALLS
from epprof_nb.files.readers.rows import Rows

if TYPE_CHECKING:
    from epprof_nb.files.readers.rows import Budget


def activity_rows(budget: Budget) -> Rows:
    """Return empty rows of a table of activities."""
    return Rows(ACTIVITIES, (
        "kind", "name", "device_id", "context_id", "stream_id", "start_ns", "end_ns",
        "correlation_id", "bytes", "copy_kind", "src_kind", "dst_kind", "grid_x", "grid_y",
        "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "graph_id",
        "graph_node_id",
    ), budget)  # fmt: skip


def call_rows(budget: Budget) -> Rows:
    """Return empty rows of a table of API calls."""
    columns = ("domain", "name", "thread_id", "start_ns", "end_ns", "correlation_id")
    return Rows(API_CALLS, columns, budget)
