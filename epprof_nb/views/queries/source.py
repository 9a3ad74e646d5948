"""Source of cells and of functions in files as JSON, with the device work of each line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.device_work import device_kinds_ns
from epprof_nb.analysis.base.source_text import split_lines
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.syntax_highlighting import syntax_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from epprof_nb.analysis.breakdowns.line_totals import LineTotals
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.view_model import ViewModel

_MAX_LINES = 1500
_MAX_LENGTH = 400
MAX_SOURCES = 200
"""Maximum number of cells and files that are shown."""


def left_out_sources(profile: ProfileData) -> list[str]:
    """Return a note if not all sources are shown."""
    count = len(profile.sources)
    if count <= MAX_SOURCES:
        return []
    note = (
        f"The source shows {MAX_SOURCES} of {count:,} cells and files, those with the most device "
        "time. Totals and tables include all."
    )
    return [note]


def source_listing(view_model: ViewModel) -> list[dict[str, Any]]:
    """Return the source of the cells, then of the files, with the totals of each line.

    Returns
    -------
    sources
        For each cell, or group of functions in a file: ``cell``, its name; ``file``, whether it is
        in a file; ``lines``; ``first``, the number of the first line; ``spans``, the syntax
        highlighting (see `epprof_nb.views.queries.syntax_highlighting`); ``left_out``, the number
        of lines omitted at the end; ``totals``; ``device_ns``, the device time of the whole
        profile. Files only contain functions that are ops. At most `MAX_SOURCES` cells and files:
        those with the most device time.
    """
    cell_totals = _by_source(view_model.line_totals)
    file_totals = _by_source(view_model.function_totals)
    profile = view_model.profile
    cells = {*profile.tables["ops"].names("cell").categories, profile.info.get("cell")}
    with_places = any(profile.info.get(name) for name in ("op_places", "class_places"))
    stacks = profile.tables["stacks"]
    in_cell = stacks.names("owner").equals("cell")
    cells.update(stacks.names("file").take(in_cell).compact().categories)
    device_ns = device_kinds_ns(profile.tables["activities"], view_model.index.kinds)
    parts = []
    shown_names = _most_device_time(profile.sources, cell_totals, file_totals)
    for name, text in profile.sources.items():
        if name not in shown_names:
            continue
        is_file = (with_places or len(stacks) > 0) and name not in cells
        # The lines that launched are more precise than the functions that are ops.
        of_source = cell_totals.get(name) or file_totals.get(name, [])
        if is_file and not of_source:
            continue  # its functions only called others
        lines = [line[:_MAX_LENGTH] for line in split_lines(text)]
        if lines and not lines[-1]:
            lines.pop()  # empty: after the last newline
        for first, part in _blocks(lines) if is_file else [(1, lines)]:
            shown = part[:_MAX_LINES]
            last = first + len(shown)
            parts.append(
                {
                    "cell": shorten(name, _MAX_LENGTH),
                    "file": is_file,
                    "first": first,
                    "lines": shown,
                    "spans": syntax_spans(shown),
                    "left_out": len(part) - len(shown),
                    "device_ns": device_ns,
                    "totals": [_totals(t) for t in of_source if first <= t.line < last],
                }
            )
    return parts


def _by_source(totals: list[LineTotals]) -> dict[str, list[LineTotals]]:
    groups: dict[str, list[LineTotals]] = {}
    for line in totals:
        groups.setdefault(line.cell, []).append(line)
    return groups


def _most_device_time(
    names: Iterable[str], *totals: Mapping[str, list[LineTotals]]
) -> frozenset[str]:
    """Return the sources to show; among equal device times, the first ones."""

    def device_ns(name: str) -> int:
        return sum(line.device_ns for by_source in totals for line in by_source.get(name, ()))

    return frozenset(sorted(names, key=device_ns, reverse=True)[:MAX_SOURCES])


def _blocks(lines: list[str]) -> list[tuple[int, list[str]]]:
    """Split a file at two blank lines; return each part with its first line number."""
    blocks: list[tuple[int, list[str]]] = []
    blank = 2
    for number, line in enumerate(lines, 1):
        if not line.strip():
            blank += 1
            continue
        if blank >= 2 or not blocks:
            blocks.append((number, []))
        else:
            blocks[-1][1].extend([""] * blank)
        blocks[-1][1].append(line)
        blank = 0
    return blocks


def _totals(t: LineTotals) -> dict[str, Any]:
    return {
        "line": t.line, "start": t.start_ns, "end": t.end_ns, "count": t.count,
        "device_ns": t.device_ns, "host_ns": t.host_ns, "kernels": t.kernels,
        "copies": t.copies, "bytes": t.bytes, **({"ops": t.ops} if t.ops else {}),
        **({"stacks": t.stacks} if t.stacks else {}),
        "top": [[shorten(name, 300), count, ns] for name, count, ns in t.top],
    }  # fmt: skip
