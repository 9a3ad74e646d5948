"""Colours of figures, pictures and the progress display; the viewer's theme has the same.

The hues are those of Okabe and Ito: colour-blind readers can tell them apart, and they remain
distinct in greyscale print.
"""

from __future__ import annotations

KERNEL, COPY, MEMSET, OTHER = "#0072b2", "#e69f00", "#009e73", "#8b95a3"
"""One hue per kind of activity."""
TOTAL = "#9fc8e3"
"""A total that contains its own part in `KERNEL`."""
SERIES = (KERNEL, "#d55e00", MEMSET, "#cc79a7", COPY, "#56b4e9", "#000000")
"""Colours of several kernels or devices in one figure, in order."""
OPERATORS = (KERNEL, "#d55e00", MEMSET, "#cc79a7", COPY, "#56b4e9", "#7a5195")
"""Colours of the operators of ONNX Runtime with the most time; others share `OTHER`. The viewer has
the same in ``render/colours.ts``."""
KINDS = {0: OTHER, 1: KERNEL, 2: COPY, 3: MEMSET}
"""Colours of activities by the code of their kind; see `epprof_nb.data.schema.ACTIVITY_KINDS`."""
OPS = {0: "#e9ecf0", 1: "#c9e0f0", 2: "#fae4b8", 3: "#c2e8dc"}
"""Colours of ops by the kind of activity that takes most of their device time."""
NODES = (
    "#9fcae2",
    "#efc39f",
    "#9fdbca",
    "#eccdde",
    "#f6db9f",
    "#c0e3f7",
    "#cdbed7",
    "#d4d7dc",
)
"""Colours of nodes by the rank of their operator: tints of `OPERATORS`, and of `OTHER`."""
TEXT, FAINT, RULE = "#1b2430", "#5b6675", "#e3e7ec"
"""Text, secondary text, and rules."""
