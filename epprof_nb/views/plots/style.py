"""What the figures share: colours, axes of their own, ticks that name their unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Okabe and Ito's hues: told apart by colour-blind readers, and as greys in print.
KERNEL, COPY, SET, OTHER = "#0072b2", "#e69f00", "#009e73", "#8b95a3"
LIGHT = "#9fc8e3"
"""A total, around its own part in `KERNEL`."""
LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
KIND_COLOURS = {0: OTHER, 1: KERNEL, 2: COPY, 3: SET}
OP_COLOURS = {0: "#e9ecf0", 1: "#c9e0f0", 2: "#fae4b8", 3: "#c2e8dc"}
MANY = 2000
"""More shapes than this are drawn as pixels in a vector figure."""

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or the axes of a new pyplot figure of `size` inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def unit_of(largest: float) -> tuple[float, str]:
    """Return nanoseconds in the unit in which `largest` (ns) reads best, and its name."""
    return next((scale, unit) for scale, unit in _UNITS if largest >= scale or unit == "ns")


def time_axis(axis: Axis, largest: float, label: str) -> None:
    """Label an axis of nanoseconds in the unit that fits its largest value."""
    from matplotlib.ticker import FuncFormatter

    scale, unit = unit_of(largest)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
    axis.set_label_text(f"{label} ({unit})")


def log_time_axis(axis: Axis, label: str) -> None:
    """Label a logarithmic axis of nanoseconds, each decade in the unit that fits it."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    def text(value: float, _: Any) -> str:  # noqa: ANN401 - matplotlib's position
        scale, unit = unit_of(value)
        return f"{value / scale:g} {unit}"

    axis.set_major_formatter(FuncFormatter(text))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(label)


def quiet(axes: Axes) -> None:
    """Take away the frame where it says nothing."""
    axes.spines[["top", "right"]].set_visible(False)


def name_rows(axes: Axes, names: list[str], letters: int = 42) -> None:
    """Label the rows of a horizontal chart, from the top; names are shortened in the middle."""
    axes.set_yticks(range(len(names)), [plain(shorten(name, letters)) for name in names])
    for text in axes.get_yticklabels():
        # A name with a dollar sign is no formula.
        text.set_parse_math(False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)


def plain(text: str) -> str:
    """Return text without control characters, which have no glyphs."""
    return "".join(c if c.isprintable() else " " for c in text)


def say(axes: Axes, text: str) -> None:
    """Write in the middle of empty axes why they are empty."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=OTHER)
