"""The source of cells and of functions in files, with the device work at each line, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.source_lines import split_lines
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.syntax import highlight

if TYPE_CHECKING:
    from epprof_nb.analysis.line_totals import LineTotals
    from epprof_nb.views.view_model import ViewModel

_LINES = 1500
_CHARACTERS = 400


def source(prepared: ViewModel) -> list[dict[str, Any]]:
    """Return the cells, then the files, with their lines and each line's totals.

    Returns
    -------
    sources
        For each: ``cell``, its name; ``file``, whether it is a file's; ``first``, the number of
        the first of its ``lines``; ``spans``, what to colour in them (see
        `epprof_nb.views.queries.syntax`); ``left_out``, how many lines too many it had; ``totals``.
        Of a file only the functions of ops are there; blank lines between them are left out.
    """
    totals = prepared.line_totals
    profile = prepared.profile
    cells = {*profile.tables["ops"].names("cell").categories, profile.info.get("cell")}
    with_places = bool(profile.info.get("op_places"))
    parts = []
    for name, text in profile.sources.items():
        is_file = with_places and name not in cells
        of_source = [t for t in (prepared.function_totals if is_file else totals) if t.cell == name]
        lines = [line[:_CHARACTERS] for line in split_lines(text)]
        if lines and not lines[-1]:
            lines.pop()  # what stands after the last line's end
        for first, part in _pieces(lines) if is_file else [(1, lines)]:
            shown = part[:_LINES]
            last = first + len(shown)
            parts.append(
                {
                    "cell": shorten(name, _CHARACTERS),
                    "file": is_file,
                    "first": first,
                    "lines": shown,
                    "spans": highlight(shown),
                    "left_out": len(part) - len(shown),
                    "totals": [_totals(t) for t in of_source if first <= t.line < last],
                }
            )
    return parts


def _pieces(lines: list[str]) -> list[tuple[int, list[str]]]:
    """Return stretches of a file with their first line's number, parted by two blank lines."""
    pieces: list[tuple[int, list[str]]] = []
    blank = 2
    for number, line in enumerate(lines, 1):
        if not line.strip():
            blank += 1
            continue
        if blank >= 2 or not pieces:
            pieces.append((number, []))
        else:
            pieces[-1][1].extend([""] * blank)
        pieces[-1][1].append(line)
        blank = 0
    return pieces


def _totals(t: LineTotals) -> dict[str, Any]:
    return {
        "line": t.line, "start": t.start_ns, "end": t.end_ns, "count": t.count,
        "device_ns": t.device_ns, "host_ns": t.host_ns, "kernels": t.kernels,
        "copies": t.copies, "bytes": t.bytes,
        "top": [[shorten(name, 300), count, ns] for name, count, ns in t.top],
    }  # fmt: skip
