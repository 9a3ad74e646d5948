"""Every event of a profile in blocks, for files: the viewer inflates the blocks in view.

Events are numbered by their position: by lane, row and start. A block has the events of `BLOCK`
consecutive positions of one table.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.memory_holders import holders_over_time
from epprof_nb.views.queries.string_table import StringTable
from epprof_nb.views.queries.window import detailed_columns, row_slices, with_values
from epprof_nb.views.wire.wire_format import encode_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel

BLOCK = 1 << 14
"""Events per block."""
_LEVEL = 6
_COUNTER_POINTS = 1 << 18
"""Maximum number of points of a counter; fewer changes are exact."""
_MAX_HOLDER_CHANGES = 1 << 20
"""Maximum number of changes of the memory of holders; fewer are exact."""


def detail_blocks(view_model: ViewModel) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the compressed message of each block, and of their index at the end.

    Beyond a page, ``counters`` has more points of the counters, and ``holders`` the holders of
    memory at more times.

    The columns are a page's (`epprof_nb.views.queries.window.query_window`); ``op`` is the
    position of the op. The message ``index`` has the header of a page, ``size`` (events per
    block), ``events`` (events per table), and ``fields`` (the names of all columns). Its
    columns ``<prefix>.first`` and ``<prefix>.last`` are the earliest start and the latest end of
    each block.
    """
    tables, layouts = view_model.profile.tables, view_model.layout.by_prefix()
    strings = StringTable()
    sent = np.full(len(tables["ops"]) + 1, -1, np.int32)
    order = layouts["op"].event_rows.order
    sent[order] = np.arange(len(order))
    bounds: dict[str, IntArray] = {}
    slices, events = {}, {}
    fields: dict[str, None] = {}
    for prefix in PREFIXES:
        event_rows = layouts[prefix].event_rows
        order = event_rows.order
        names = with_values(view_model, prefix, np.asarray(order, np.int64))
        first_last = []
        for number, begin in enumerate(range(0, len(order), BLOCK)):
            rows = order[begin : begin + BLOCK].astype(np.int64)
            start, end = event_rows.between(begin, begin + BLOCK)
            first_last.append((int(start.min()), int(end.max())))
            columns = {f"{prefix}.start": start, f"{prefix}.dur": end - start}
            columns |= detailed_columns(
                view_model, prefix, rows, sent, strings=strings, names=names
            )
            fields |= dict.fromkeys(columns)
            yield f"{prefix}-{number}", zlib.compress(encode_message({}, columns), _LEVEL)
        first, last = np.array(first_last, np.int64).reshape(-1, 2).T
        bounds |= {f"{prefix}.first": first, f"{prefix}.last": last}
        sizes = np.diff(event_rows.first)
        slices[prefix] = row_slices(
            np.repeat(event_rows.lane, sizes), np.repeat(event_rows.row, sizes)
        )
        events[prefix] = len(order)
    header = {
        "kinds": ACTIVITY_KINDS, "names": list(strings.index), "short_names": strings.short,
        "texts": strings.columns, "slices": slices, "shown": {}, "size": BLOCK, "events": events,
        "fields": list(fields),
    }  # fmt: skip
    fine = view_model.counter_columns(points=_COUNTER_POINTS)
    yield "counters", zlib.compress(encode_message({}, fine), _LEVEL)
    if len(tables["memory_blocks"]):
        of_memory = holders_over_time(view_model.index, _MAX_HOLDER_CHANGES)
        yield "holders", zlib.compress(encode_message(*of_memory), _LEVEL)
    yield "index", zlib.compress(encode_message(header, bounds), _LEVEL)
