"""Headers of the views: everything that the viewer shows beside the events."""

from __future__ import annotations

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
from epprof_nb.views.queries.source import left_out_sources, source_listing
from epprof_nb.views.queries.tables import available_breakdowns, available_trees, breakdown_table
from epprof_nb.views.view_model import FINDINGS_LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.steps.by_repeat import RepeatStatistics
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.queries.view_selection import ActiveSelection
    from epprof_nb.views.view_model import ViewModel

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


def initial_selection(
    selection: ActiveSelection, columns: Mapping[str, IntArray]
) -> dict[str, Any]:
    """Return the initial selection, and the number of its events that a view contains."""
    sent = sum(int(columns[f"{prefix}.pinned"].sum()) for prefix in selection.pinned)
    return {**selection.seek(), "sent": sent}


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
    if not view_model.with_findings:
        left_out.insert(0, FINDINGS_LEFT_OUT)
    if outside := view_model.events_outside:
        low, high = map(duration, view_model.time_range)
        left_out.insert(
            0,
            f"{plural(outside, 'event')} outside of {low} to {high} cannot be shown in full: a "
            "clock jumped when they were recorded. Tables and totals include them.",
        )
    notes = [*left_out, *(profile.info.get("notes") or ()), *by_operator.hints(view_model.index)]
    return [shorten(str(note), _MAX_NOTE_LENGTH) for note in notes[:_MAX_NOTES]]
