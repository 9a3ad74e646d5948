"""Messages of a live view: its first view, then windows and counters on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.wire.headers import first_view_header, initial_selection
from epprof_nb.views.wire.wire_format import encode_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.queries.view_selection import ActiveSelection
    from epprof_nb.views.view_model import ViewModel

_FIRST_VIEW_WIDTH = 1200.0
"""Width in pixels of the first view of a live widget, before the actual width is known."""


def first_view_message(view_model: ViewModel, selection: ActiveSelection | None = None) -> bytes:
    """Return the first view of a live widget, the whole time range; the rest follows on request."""
    view_model.warm_up_first_view()
    low, high = view_model.time_range
    header, columns = query_window(
        view_model, WindowQuery(low, high, _FIRST_VIEW_WIDTH), details=False,
        highlighted=selection.highlighted if selection else None,
        pinned=selection.pinned if selection else None,
    )  # fmt: skip
    head = first_view_header(view_model)
    if selection is not None:
        head["given"] = initial_selection(selection, columns)
    return encode_message({**head, **header}, columns, compact=False)


def window_message(
    view_model: ViewModel, window: WindowQuery, *, highlighted: Mapping[str, IntArray] | None = None
) -> bytes:
    """Return the events of a window."""
    header, columns = query_window(view_model, window, details=False, highlighted=highlighted)
    return encode_message(header, columns, compact=False)


def counters_message(view_model: ViewModel, window: tuple[int, int] | None = None) -> bytes:
    """Return the columns of the counters, of a window or of the whole time range."""
    columns = view_model.counters if window is None else view_model.counter_columns(window)
    return encode_message({}, columns, compact=False)
