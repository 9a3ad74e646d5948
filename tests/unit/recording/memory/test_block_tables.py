"""Pools and the driver's allocations: no memory is in two of them."""

import pytest

from epprof_nb.data.schema import MEMORY, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.memory.block_tables import pool_tables
from epprof_nb.recording.memory.torch_history import TorchMemory
from epprof_nb.recording.memory.torch_snapshot import read_snapshot
from tests.helpers import tiny

BASE, PAGE = 1 << 32, 20 << 20


def snapshot(pages, maps=()):
    """One expandable segment with this number of pages, and the events that mapped more."""
    segment = {
        "device": 0, "address": BASE, "total_size": pages * PAGE, "stream": 0, "blocks": [],
        "is_expandable": True,
    }  # fmt: skip
    events = [
        {"action": "segment_map", "addr": BASE + first * PAGE, "size": count * PAGE, "stream": 0,
         "time_us": 1 + i}
        for i, (first, count) in enumerate(maps)
    ]  # fmt: skip
    return read_snapshot({"segments": [segment] * (pages > 0), "device_traces": [events]})


@pytest.mark.parametrize(
    ("before", "after"),
    [(snapshot(0), snapshot(3, [(0, 1), (1, 2)])), (snapshot(2), snapshot(3, [(2, 1)]))],
)
def test_pieces_of_expandable_segments_are_in_pytorchs_pool_only(before, after):
    """CUPTI records each mapped piece, also those at which no segment begins."""
    others = [BASE - PAGE, BASE + 3 * PAGE]
    recorded = tiny.table(
        MEMORY,
        [
            {"memory_kind": "device", "operation": "allocation", "address": address, "bytes": PAGE,
             "device_id": 0, "time_ns": 500}
            for address in [*others, *(BASE + i * PAGE for i in range(3))]
        ],
    )  # fmt: skip
    segments = pool_tables(recorded, [TorchMemory(before, after, 0, 0)], Table(OPS), 0)[
        "memory_segments"
    ]
    of_driver = segments.take(segments.names("pool").equals("driver"))
    assert sorted(of_driver["address"].tolist()) == others
