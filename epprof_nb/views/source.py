"""The cells' source with the device work at each line, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.views.units import shorten

if TYPE_CHECKING:
    from epprof_nb.views.prepared import Prepared

_LINES = 1500


def source(prepared: Prepared) -> list[dict[str, Any]]:
    """Return the cells with their lines and each line's totals."""
    totals = prepared.lines
    cells = []
    for cell, text in prepared.profile.sources.items():
        lines = text.splitlines()
        cells.append(
            {
                "cell": cell,
                "lines": [line[:400] for line in lines[:_LINES]],
                "left_out": max(len(lines) - _LINES, 0),
                "totals": [
                    {
                        "line": t.line, "start": t.start_ns, "end": t.end_ns,
                        "device_ns": t.device_ns, "host_ns": t.host_ns, "kernels": t.kernels,
                        "copies": t.copies, "bytes": t.bytes,
                        "top": [[shorten(name, 300), count, ns] for name, count, ns in t.top],
                    }
                    for t in totals
                    if t.cell == cell and t.line <= _LINES
                ],
            }
        )  # fmt: skip
    return cells
