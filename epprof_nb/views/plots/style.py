"""Style of the figures: new axes, and ticks labelled in the unit that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.util import palette
from epprof_nb.util.format import shorten, with_glyphs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

MANY = 2000
"""More shapes than this are rasterised in a vector figure."""

_MAX_CHARACTERS = 42
"""Maximum length of the label of a row."""
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or if None the axes of a new pyplot figure of `size` inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def unit_of(largest: float) -> tuple[float, str]:
    """Return the size in nanoseconds and the name of the unit that fits `largest` (ns)."""
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


def hide_frame(axes: Axes) -> None:
    """Hide the top and right spines."""
    axes.spines[["top", "right"]].set_visible(False)


def label_rows(axes: Axes, names: list[str]) -> None:
    """Label the rows of a horizontal chart from the top; long names are elided in the middle."""
    labels = [with_glyphs(shorten(name, _MAX_CHARACTERS)) for name in names]
    axes.set_yticks(range(len(names)), labels)
    for text in axes.get_yticklabels():
        # A dollar sign in a name does not start a formula.
        text.set_parse_math(False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)


def explain_empty(axes: Axes, text: str) -> None:
    """Write the reason for empty axes in their middle."""
    axes.text(
        0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=palette.OTHER
    )
