"""Profile to the payload of the viewer: one compressed buffer that fits a notebook."""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis import counters
from epprof_nb.analysis.summary import device_word, wall_of
from epprof_nb.util.format import duration, percent, shorten
from epprof_nb.views.prefetch import ahead
from epprof_nb.views.queries.icicle import tree
from epprof_nb.views.queries.source import source
from epprof_nb.views.queries.tables import offered, table
from epprof_nb.views.queries.window import Window, events
from epprof_nb.views.wire.columns import bundle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.queries.selections import Standing
    from epprof_nb.views.queries.window import Ints
    from epprof_nb.views.view_model import ViewModel

_PAYLOAD_BYTES = 1_150_000
"""Base64 of this, the viewer and the picture stay under 2 MB together."""
_RECTANGLES, _FEWEST = 60_000, 300
_FIRST_WIDTH = 1200.0
"""Pixels of a live view's first picture, before its width is known."""


def skeleton(prepared: ViewModel) -> dict[str, Any]:
    """What the first picture needs and costs little: range, lanes, which counters there are.

    The summary has only what is known without looking at every event.
    """
    profile = prepared.profile
    error = profile.info.get("error")
    return {
        "range": prepared.time_range,
        "summary": {
            "wall": duration(wall_of(profile)), "busy": [], "counts": [], "quality": "",
            "stray": None, "incomplete": False, "empty": None,
            "error": None if error is None else str(error),
            "device_word": device_word(profile.info), "notes": _notes(profile),
        },
        "findings": [],
        "gaps": [],
        "lanes": [
            {"kind": lane.kind, "label": lane.label, "title": lane.title, "rows": lane.rows,
             "device": lane.device, "thread": lane.thread}
            for lane in prepared.layout.lanes
        ],
        "counters": prepared.tracks,
        "breakdowns": offered(prepared),
    }  # fmt: skip


def headline(prepared: ViewModel) -> dict[str, Any]:
    """Summary, findings and idle gaps, as the skeleton has room for them."""
    with ahead(prepared, lambda: prepared.line_totals):
        summary, found = prepared.summary, prepared.findings
    stray = summary.unattributed_text
    return {
        "summary": {
            "wall": duration(summary.wall_ns),
            "busy": [
                {"label": f"{summary.device_word} {b.device_id}" if len(summary.busy) > 1
                 else summary.device_word, "name": b.name, "share": b.share,
                 "text": percent(b.share)}
                for b in summary.busy
            ],
            "counts": [{"what": what, "text": text} for what, text in summary.counted],
            "quality": summary.recording_text,
            "stray": {"what": "stray", "text": stray} if stray else None,
            "incomplete": summary.dropped > 0,
            "empty": summary.empty,
            "error": summary.error,
            "device_word": summary.device_word,
            "notes": _notes(prepared.profile),
        },
        "findings": [
            {"text": f.text, "start": f.start_ns, "end": f.end_ns} for f in found
        ],
        "gaps": [list(gap) for gap in summary.longest_gaps],
    }  # fmt: skip


def _notes(profile: ProfileData) -> list[str]:
    return [shorten(str(note), 500) for note in (profile.info.get("notes") or ())[:20]]


def overview(prepared: ViewModel) -> dict[str, Any]:
    """All that is not an event: what a page embeds, since it has nobody to ask."""
    return {
        **skeleton(prepared),
        **headline(prepared),
        "tables": {by: table(prepared, by) for by in offered(prepared)},
        "tree": tree(prepared),
        "source": source(prepared),
    }


def pack(prepared: ViewModel, *, most: int = _RECTANGLES) -> bytes:
    """Return the payload of a page, compressed; see `epprof_nb.views.wire.columns` for its layout.

    Parameters
    ----------
    prepared
        The profile.
    most
        Rectangles to embed at most: of a large profile one stands for several events, as the
        payload's ``shown`` says. Fewer are, where the payload would grow too large for a notebook.
    """
    head = overview(prepared)
    curves = prepared.counters
    low, high = prepared.time_range
    given = prepared.selections.given
    while True:
        header, columns = events(
            prepared, Window(low, high), most=most,
            lit=given.lit if given else None, keep=given.kept if given else None,
        )  # fmt: skip
        if given is not None:
            head["given"] = _given(prepared, given, columns)
        data = zlib.compress(bundle({**head, **header}, {**columns, **curves}), 6)
        if len(data) <= _PAYLOAD_BYTES or most <= _FEWEST:
            return data
        most = max(int(0.9 * most * _PAYLOAD_BYTES / len(data)), _FEWEST)


def pack_first(prepared: ViewModel, width: float = _FIRST_WIDTH) -> bytes:
    """Return what a live view shows first, plain: the skeleton and all of the time.

    The rest is asked for when the first picture stands.
    """
    prepared.warm_up_first_view()
    low, high = prepared.time_range
    given = prepared.selections.given
    header, columns = events(
        prepared, Window(low, high, width), light=True,
        lit=given.lit if given else None, keep=given.kept if given else None,
    )  # fmt: skip
    head = skeleton(prepared)
    if given is not None:
        head["given"] = _given(prepared, given, columns)
    return bundle({**head, **header}, columns, plain=True)


def _given(prepared: ViewModel, given: Standing, columns: Mapping[str, Ints]) -> dict[str, Any]:
    sent = sum(int(columns[f"{prefix}.kept"].sum()) for prefix in given.kept)
    return {**prepared.selections.step({"what": "rows"}), "sent": sent}


def pack_window(
    prepared: ViewModel, window: Window, *, lit: Mapping[str, Ints] | None = None
) -> bytes:
    """Return the rectangles of a window alone, plain."""
    header, columns = events(prepared, window, light=True, lit=lit)
    return bundle(header, columns, plain=True)


def pack_counters(prepared: ViewModel, window: tuple[int, int] | None = None) -> bytes:
    """Return the columns of the counters alone, of all or of a window, plain."""
    found = prepared.counters if window is None else counters.columns(prepared.index, window)
    return bundle({}, found, plain=True)


def to_base64(data: bytes) -> str:
    """ASCII text of `data` for a page; it holds no character that HTML minds."""
    return base64.b64encode(data).decode("ascii")
