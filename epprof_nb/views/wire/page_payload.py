"""Payload of a page: a whole profile, within the size limits of a notebook."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from epprof_nb.views.queries.memory_holders import holders_over_time
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.wire.headers import full_header, initial_selection
from epprof_nb.views.wire.totals import page_totals
from epprof_nb.views.wire.wire_format import encode_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.queries.view_selection import ActiveSelection
    from epprof_nb.views.view_model import ViewModel

_MAX_PAYLOAD_BYTES = 1_150_000
"""Keeps the payload as base64, the viewer and the image under 2 MB in total."""
_MAX_RECTS, _MIN_RECTS = 60_000, 300
_MAX_HOLDER_CHANGES = 1 << 16
"""Maximum number of changes of the memory of holders: about 200 kB compressed."""


def page_payload(
    view_model: ViewModel,
    selection: ActiveSelection | None = None,
    *,
    max_rects: int = _MAX_RECTS,
    with_detail: bool = False,
) -> bytes:
    """Return the compressed payload of a page, laid out as `epprof_nb.views.wire.wire_format` says.

    Parameters
    ----------
    view_model
        The profile.
    selection
        Initial selection.
    max_rects
        Maximum number of rectangles. In a large profile, one represents several events; ``shown``
        in the header has the numbers. It is reduced until the payload is small enough for a
        notebook.
    with_detail
        Whether every event follows in the page (`epprof_nb.views.wire.embedded_events`). Then the
        payload may be larger, and ``row`` has the position of each rectangle's event.
    """
    head, totals = {**full_header(view_model), "detail": with_detail}, None
    other_columns = view_model.counters
    if len(view_model.profile.tables["memory_blocks"]):
        of_memory, holder_columns = holders_over_time(view_model.index, _MAX_HOLDER_CHANGES)
        head |= of_memory
        other_columns = other_columns | holder_columns
    low, high = view_model.time_range
    while True:
        header, columns = query_window(
            view_model, WindowQuery(low, high), max_rects=max_rects,
            highlighted=selection.highlighted if selection else None,
            pinned=selection.pinned if selection else None, positions=with_detail,
        )  # fmt: skip
        if selection is not None:
            head["given"] = initial_selection(selection, columns)
        if totals is None and not _is_complete(view_model, columns):
            totals, total_columns = page_totals(view_model)
            head |= totals
            other_columns = other_columns | total_columns
        message = encode_message({**head, **header}, {**columns, **other_columns})
        data = zlib.compress(message, 6)
        if with_detail or len(data) <= _MAX_PAYLOAD_BYTES or max_rects <= _MIN_RECTS:
            return data
        max_rects = max(int(0.9 * max_rects * _MAX_PAYLOAD_BYTES / len(data)), _MIN_RECTS)


def is_merged(view_model: ViewModel) -> bool:
    """Whether a page has too many events for separate rectangles, or too many blocks of memory."""
    layouts = view_model.layout.by_prefix().values()
    changes = 2 * len(view_model.profile.tables["memory_blocks"])
    rows = sum(len(layout.event_rows.order) for layout in layouts)
    return rows > _MAX_RECTS or changes > _MAX_HOLDER_CHANGES


def _is_complete(view_model: ViewModel, columns: Mapping[str, IntArray]) -> bool:
    """Whether each event has a separate rectangle."""
    tables = view_model.profile.tables
    return all(
        len(columns[f"{prefix}.start"]) >= len(tables[name]) - hidden
        for prefix, name, hidden in (
            ("op", "ops", len(view_model.op_of_statement)),
            ("api", "api_calls", 0),
            ("act", "activities", 0),
        )
    )
