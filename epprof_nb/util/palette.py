"""Colours of figures, pictures and the progress display; the viewer's theme has the same.

The hues are from Okabe and Ito: colour-blind readers can distinguish them, and they remain
distinct in greyscale print.
"""

from __future__ import annotations

KERNEL, COPY, MEMSET, OTHER = "#0072b2", "#e69f00", "#009e73", "#8b95a3"
"""One hue per kind of activity."""
TOTAL = "#9fc8e3"
"""A total whose own part is drawn in `KERNEL`."""
SERIES = (KERNEL, "#d55e00", MEMSET, "#cc79a7", COPY, "#56b4e9", "#000000")
"""Colours of several kernels or devices in one figure, in order."""
OPERATORS = (
    *SERIES[:-1], "#7a5195", "#783018", "#4f1fbf", "#ccc06c", "#3a5252", "#a8d5b5"
)  # fmt: skip
"""Colours of operators, classes of modules and functions by hue.

`epprof_nb.views.timeline.op_colours` chooses the hue of a name. The viewer has the same in
``render/palettes.ts``. A test there checks that colour-blind readers can tell them apart.
"""
KINDS = {0: OTHER, 1: KERNEL, 2: COPY, 3: MEMSET}
"""Colours of activities by the code of their kind; see `epprof_nb.data.schema.ACTIVITY_KINDS`."""
OPS = {0: "#e9ecf0", 1: "#c9e0f0", 2: "#fae4b8", 3: "#c2e8dc"}
"""Colours of ops by the kind of activity that takes most of their device time."""
_TINT = 3 / 8
"""Share of its hue in the tint of an op; the viewer has the same."""
TEXT, RULE = "#1b2430", "#e3e7ec"
"""Text and rules."""


def _tint(colour: str) -> str:
    """Return `_TINT` of a colour on white."""
    shares = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    # Rounded as in JavaScript.
    return "#" + "".join(f"{int(255.5 + (share - 255) * _TINT):02x}" for share in shares)


NODES = tuple(map(_tint, OPERATORS))
"""Colours of nodes and ops by the hue of their operator: tints of `OPERATORS`."""
