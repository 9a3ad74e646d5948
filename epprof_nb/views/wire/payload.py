"""Messages of the viewer: the payload of a page, and the messages of a live view."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.devices import device_labels, device_word
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.analysis.breakdowns.registry import TREES
from epprof_nb.analysis.frameworks import by_operator
from epprof_nb.analysis.steps.by_repeat import repeat_statistics
from epprof_nb.analysis.summary.profile_origin import made_on
from epprof_nb.arrays.small_codes import count_codes
from epprof_nb.data.repeats import repeat_bounds, repeat_names
from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.util.format import duration, plural, shorten
from epprof_nb.views.prefetch import prefetch
from epprof_nb.views.queries.icicle import icicle
from epprof_nb.views.queries.memory_holders import holders_over_time
from epprof_nb.views.queries.source import left_out_sources, source_listing
from epprof_nb.views.queries.tables import available_breakdowns, available_trees, breakdown_table
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.wire.columns import encode_message
from epprof_nb.views.wire.totals import page_totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.steps.by_repeat import RepeatStatistics
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.queries.view_selection import ActiveSelection
    from epprof_nb.views.view_model import ViewModel

_MAX_PAYLOAD_BYTES = 1_150_000
"""Keeps the payload as base64, the viewer and the image under 2 MB in total."""
_MAX_RECTS, _MIN_RECTS = 60_000, 300
_FIRST_VIEW_WIDTH = 1200.0
"""Width in pixels of the first view of a live widget, before the actual width is known."""
_MAX_HOLDER_CHANGES = 1 << 16
"""Maximum number of changes of the memory of holders: about 200 kB compressed."""
_MAX_NOTES, _MAX_NOTE_LENGTH = 20, 500
_MAX_OPERATORS = 8
"""Operators in the legend."""
_MAX_REPEATS = 2_000
"""Maximum number of boundaries on the time axis; more would not be visible."""


def first_view_header(view_model: ViewModel) -> dict[str, Any]:
    """Return the header of the first view: time range, lanes, available counters and tables.

    The headline only has the numbers that need no pass over the events.
    """
    profile = view_model.profile
    error, repeats = profile.info.get("error"), _repeats(repeat_statistics(view_model.index))
    return {
        "range": view_model.time_range,
        "headline": {
            "wall": duration(wall_of(profile)), "busy": [], "counts": [], "quality": "",
            "overhead": {"text": "", "note": ""},
            "stray": None, "incomplete": False, "empty": None, "repeats": repeats,
            "error": None if error is None else shorten(str(error), _MAX_NOTE_LENGTH),
            "memory": [], "device_word": device_word(profile.info), "notes": _notes(view_model),
        },
        "kinds_present": _kinds_present(view_model),
        "operators": [
            {"name": name, "number": hue}
            for name, hue in [*view_model.hue_of_name.items()][:_MAX_OPERATORS]
        ],
        "operator_word": view_model.operators.label,
        "made_on": made_on(profile.info),
        "findings": [],
        "gaps": [],
        "repeats": _repeat_bounds(profile),
        "repeat_names": repeat_names(profile.info)._asdict(),
        "lanes": [
            {"kind": lane.kind, "label": lane.label, "title": lane.title, "rows": lane.rows,
             "device": lane.device, "thread": lane.thread, "device_label": lane.device_label}
            for lane in view_model.layout.lanes
        ],
        "devices": device_labels(
            profile.info,
            sorted({lane.device for lane in view_model.layout.lanes if lane.device >= 0}),
        ),
        "counters": view_model.tracks,
        "breakdowns": available_breakdowns(view_model),
        "has_stacks": "stack_tree" in available_trees(view_model),
    }  # fmt: skip


def late_header(view_model: ViewModel) -> dict[str, Any]:
    """Return the headline, findings and idle gaps, which `first_view_header` leaves empty."""
    with prefetch(view_model, lambda: view_model.line_totals):
        headline, findings = view_model.headline, view_model.findings
    stray = headline.unattributed_text
    return {
        "headline": {
            "wall": duration(headline.wall_ns),
            "busy": [
                {"label": b.label if len(headline.busy) > 1 else headline.device_word,
                 "name": b.name, "share": b.share,
                 "text": b.text}
                for b in headline.busy
            ],
            "counts": [{"what": what, "text": text} for what, text in headline.counted],
            "quality": headline.recording_text,
            "overhead": {"text": headline.overhead_text, "note": headline.overhead_note},
            "stray": {"what": "stray", "text": stray} if stray else None,
            "incomplete": not headline.is_complete,
            "empty": headline.empty,
            "repeats": _repeats(headline.repeats),
            "error": headline.error,
            "memory": list(headline.memory),
            "device_word": headline.device_word,
            "notes": _notes(view_model),
        },
        "findings": [
            {"text": f.text, "advice": f.advice, "start": f.start_ns, "end": f.end_ns}
            for f in findings
        ],
        "gaps": [list(gap) for gap in headline.longest_gaps],
    }  # fmt: skip


def _kinds_present(view_model: ViewModel) -> list[str]:
    counts = count_codes(view_model.index.kinds, len(ACTIVITY_KINDS))
    return [kind for kind, count in zip(ACTIVITY_KINDS, counts.tolist(), strict=True) if count]


def _repeats(repeats: RepeatStatistics | None) -> dict[str, Any] | None:
    """Return the statistics of the repeats, and the points of their strip chart."""
    if repeats is None:
        return None
    return {
        "text": repeats.text, "count": repeats.count, "mean": repeats.mean_ns,
        "points": list(repeats.points_ns), "names": repeats.names._asdict(),
    }  # fmt: skip


def _repeat_bounds(profile: ProfileData) -> list[list[int]]:
    """Return the start and end of each repeat; only the first ones if there are very many."""
    starts, ends = (times[:_MAX_REPEATS] for times in repeat_bounds(profile.info))
    return [list(bounds) for bounds in zip(starts.tolist(), ends.tolist(), strict=True)]


def _notes(view_model: ViewModel) -> list[str]:
    profile = view_model.profile
    left_out = [*view_model.layout.notes, *left_out_sources(profile)]
    if outside := view_model.events_outside:
        low, high = map(duration, view_model.time_range)
        left_out.insert(
            0,
            f"{plural(outside, 'event')} outside of {low} to {high} cannot be shown in full: a "
            "clock jumped when they were recorded. Tables and totals include them.",
        )
    notes = [*left_out, *(profile.info.get("notes") or ()), *by_operator.hints(view_model.index)]
    return [shorten(str(note), _MAX_NOTE_LENGTH) for note in notes[:_MAX_NOTES]]


def full_header(view_model: ViewModel) -> dict[str, Any]:
    """Return everything except events. A page embeds it, because it cannot query Python."""
    offered = available_breakdowns(view_model)
    trees = [by for by in TREES if by in available_trees(view_model)]
    return {
        **first_view_header(view_model),
        **late_header(view_model),
        "tables": {by: breakdown_table(view_model, by) for by in offered},
        "trees": {by: icicle(view_model, by) for by in trees},
        "source": source_listing(view_model),
        "whole": by_range(view_model.index, *view_model.time_range),
    }


def page_payload(
    view_model: ViewModel,
    selection: ActiveSelection | None = None,
    *,
    max_rects: int = _MAX_RECTS,
    with_detail: bool = False,
) -> bytes:
    """Return the compressed payload of a page; see `epprof_nb.views.wire.columns` for its layout.

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
            head["given"] = _initial_selection(selection, columns)
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
        head["given"] = _initial_selection(selection, columns)
    return encode_message({**head, **header}, columns, compact=False)


def _initial_selection(
    selection: ActiveSelection, columns: Mapping[str, IntArray]
) -> dict[str, Any]:
    sent = sum(int(columns[f"{prefix}.pinned"].sum()) for prefix in selection.pinned)
    return {**selection.seek(), "sent": sent}


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


def to_base64(data: bytes) -> str:
    """Return `data` as base64 text. It needs no escaping in HTML."""
    return base64.b64encode(data).decode("ascii")
