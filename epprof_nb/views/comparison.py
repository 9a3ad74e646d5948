"""`compare` and its result, which notebooks display."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.compare import compare_sides as analysis
from epprof_nb.analysis.compare.by_stack import stack_comparison
from epprof_nb.analysis.compare.idle_time import idle_per_repeat
from epprof_nb.analysis.compare.reasons_not_to_compare import ALLOWED
from epprof_nb.analysis.compare.spread_between_recordings import Spread
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns
from epprof_nb.files.atomic_file import replacing
from epprof_nb.files.measured_spreads import load_spread
from epprof_nb.util.cached import cached_property
from epprof_nb.util.text_controls import with_visible_controls
from epprof_nb.views.queries.stack_changes import stack_changes
from epprof_nb.views.renderers import comparison_output as renderers
from epprof_nb.views.renderers.flame_graph import FlameGraph, shown_change
from epprof_nb.views.view import View
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.linked_views import Link

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.compare.compare_sides import Verdict
    from epprof_nb.analysis.compare.reasons_not_to_compare import Allowed
    from epprof_nb.views.widget.widget import LiveView

Recordings: TypeAlias = ProfileData | Sequence[ProfileData]
"""One recording, or several of the same code."""


NO_MEMORY = (
    "The memory of these recordings is not known on both sides. Record all of them with "
    '`--detail memory`, or `epprof_nb.profile(detail="memory")`.'
)


class Comparison:
    """Result of `epprof_nb.compare`; a notebook shows it as a table.

    Attributes
    ----------
    verdict
        ``"faster"``, ``"slower"`` or ``"no difference found"``, of the new code; ``"cannot tell"``
        if the recordings vary too much, or if their conditions may explain the difference, and
        ``"cannot be compared"`` if a verdict would mislead. It refers to the elapsed time of a
        repeat, including the device work that the repeat launched.
    reason
        The times, the interval of the change and the smallest change that would have been found,
        or why the recordings cannot be compared and what to do.
    change, change_low, change_high
        Relative change of the elapsed time, such as 0.05 for 5 % slower, and the ends of its
        interval. They are None if the recordings cannot be compared.
    detectable_change
        Smallest relative change of the elapsed time that would have been found; None if the
        recordings cannot be compared.
    memory_change
        Relative change of the bytes in use at the peak: infinite if there were none before, None
        unless all recordings have ``detail="memory"``.
    notes
        Allowed differences between the recordings, and the number of repeats with known ONNX
        Runtime nodes, if some have none.
    assumes_spread
        Whether the verdict assumes the variation between recordings of the same code on the host,
        because ``epprof calibrate`` did not measure it.
    """

    def __init__(
        self,
        result: analysis.ComparisonResult,
        recordings: tuple[list[ProfileData], list[ProfileData]],
    ) -> None:
        self._result = result
        self._recordings = recordings
        total = result.total
        self.verdict: Verdict = result.verdict
        self.reason = result.reason
        self.notes = result.notes
        self.assumes_spread = result.assumes_spread
        self.change = total.change
        self.memory_change = result.memory.change
        self.change_low: float | None = None
        self.change_high: float | None = None
        self.detectable_change: float | None = None
        if total.ratios is not None:
            self.change_low = float(total.ratios.low[0]) - 1
            self.change_high = float(total.ratios.high[0]) - 1
            self.detectable_change = float(total.ratios.detectable[0])

    @property
    @with_columns("compare_ops")
    def ops(self) -> pd.DataFrame:
        """Time of each op before and after.

        {columns}
        """
        return self._result.ops.to_frame()

    @property
    @with_columns("compare_kernels")
    def kernels(self) -> pd.DataFrame:
        """Device time of each kernel of each op before and after.

        {columns}
        """
        return self._result.kernels.to_frame()

    @property
    @with_columns("compare_lines")
    def lines(self) -> pd.DataFrame:
        """Device time of each line of code before and after.

        Work belongs to the innermost line of the user's code in the Python stack that launched it.
        Lines match by their file and text, wherever they are in the file.

        {columns}
        """
        return self._result.lines.to_frame()

    @property
    @with_columns("compare_ops")
    def nodes(self) -> pd.DataFrame:
        """The rows of `ops` that are nodes of ONNX Runtime sessions.

        {columns}
        """
        return self._result.nodes.to_frame()

    @property
    @with_columns("compare_memory")
    def memory(self) -> pd.DataFrame:
        """Bytes in use before and after, at the peak and at the end, by the op that allocated them.

        {columns}

        Examples
        --------
        >>> import epprof_nb
        >>> from epprof_nb import host
        >>> sides = []
        >>> for items in (1000, 1500):
        ...     with epprof_nb.profile(detail="memory") as prof:
        ...         with epprof_nb.op("load"):
        ...             array = host.empty(items)
        ...     sides.append(prof)
        >>> changes = epprof_nb.compare(*sides).memory.set_index("path")
        >>> int(changes.loc["load", "delta_bytes"])
        2000
        """
        from epprof_nb.data.noted_frame import NOTE, NotedFrame

        frame = NotedFrame(self._result.memory.ops.to_frame())
        if not self._result.memory.is_known:
            frame.attrs[NOTE] = NO_MEMORY
        return frame

    @with_columns("compare_by_stack")
    def by_stack(self, *, library: bool = False) -> pd.DataFrame:
        """Device time, launches and waits of each Python stack before and after.

        Frames are matched from the outermost one down, by function and text of their line. Line
        numbers and names of cells do not count, because the code may have moved. A notebook shows
        the table as a flame graph.

        Parameters
        ----------
        library
            Whether frames of libraries have rows. Otherwise the frame of your code that called them
            has their work.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> import epprof_nb
        >>> from epprof_nb.testing import synthetic_profile
        >>> prof = synthetic_profile(activities=100)
        >>> changes = epprof_nb.compare(prof, prof).by_stack()
        >>> int(changes["delta_ns"].abs().max())
        0
        """
        return self._by_stack(library=library).to_frame()

    def _by_stack(self, *, library: bool, folded: bool = False) -> ResultTable:
        old, new = (
            [ProfileIndex(profile) for profile in recordings] for recordings in self._recordings
        )
        return stack_comparison(old, new, library=library, folded=folded)

    @cached_property
    def _flame_graph(self) -> FlameGraph | None:
        """The flame graph of the difference; None if a side has no Python stacks."""
        if not all(
            any(len(profile.tables["stacks"]) for profile in recordings)
            for recordings in self._recordings
        ):
            return None
        own, full = (
            stack_changes(self._by_stack(library=library, folded=True)) for library in (False, True)
        )
        idle = [
            idle_per_repeat([ProfileIndex(profile) for profile in recordings])
            for recordings in self._recordings
        ]
        return FlameGraph(own, full, shown_change(own, self._result.total, idle[0], idle[1]))

    def with_note(self, text: str) -> Comparison:
        """Return the comparison with a further note."""
        return Comparison(replace(self._result, notes=(*self.notes, text)), self._recordings)

    def to_markdown(self) -> str:
        """Return the verdict, the reason and the ops that changed as Markdown."""
        return renderers.as_markdown(self._result)

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write a self-contained HTML page with the timelines and the tables."""
        with replacing(path) as file:
            file.write(renderers.as_page(self._result, self._flame_graph).encode(errors="replace"))

    def widget(self) -> tuple[LiveView, LiveView]:
        """Show the timelines of both sides, which zoom and move together.

        They begin with the typical repeat in the picture of the comparison, aligned on the same op.
        Of several recordings, they show the first.

        Returns
        -------
        old, new
            The widgets; see `View.widget`.
        """
        from IPython.display import display

        timelines = self._result.timelines
        sides_shown = [recordings[0] for recordings in self._recordings]
        sides = (timelines.old, timelines.new)
        rows = [row for side in sides for row in side.rows if len(row.starts)]
        first = (
            min((int(row.starts.min()) for row in rows), default=0),
            max((int(row.ends.max()) for row in rows), default=0),
        )
        ranges = [
            [time - origin for time in ViewModel(side).time_range]
            for side, origin in zip(sides_shown, timelines.origins, strict=True)
        ]
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        group = uuid.uuid4().hex
        shown = []
        names = ("before", "after")
        for name, side, origin in zip(names, sides_shown, timelines.origins, strict=True):
            display({"text/plain": name, "text/markdown": f"**{name}**"}, raw=True)
            link = Link(group, origin, first, low + origin, high + origin)
            shown.append(View(side).widget(link=link))
        return shown[0], shown[1]

    def __repr__(self) -> str:
        return renderers.as_text(self._result)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        html = renderers.as_html(self._result, self._flame_graph)
        return {
            "text/html": with_visible_controls(html),
            "text/markdown": renderers.as_markdown(self._result),
            "text/plain": renderers.as_text(self._result),
        }


def compare(
    old: Recordings,
    new: Recordings,
    *,
    allow: Collection[Allowed] = (),
    names: tuple[str, str] = ("old", "new"),
) -> Comparison:
    """Compare two profiles of repeated code, and distinguish changes from noise.

    Parameters
    ----------
    old, new
        A profile recorded with ``--repeat``, or a sequence of such profiles of the same code.
        Several recordings per side, made alternately, reveal smaller changes, because they measure
        the variation between recordings of the same code.
    allow
        Differences between the recordings that do not prevent a comparison: ``"devices"``,
        ``"clocks"``, ``"counts"`` (executions of an op), ``"shapes"`` (of the inputs of ONNX
        Runtime nodes), ``"dropped"`` (dropped records) and ``"options"`` (of recording). They
        become notes.
    names
        Names of the variables, for the commands in the reason.

    Returns
    -------
    Comparison
        The verdict with its reason, and tables of ops, kernels, lines and nodes.

    Raises
    ------
    TypeError
        If `old` or `new` holds something other than profiles.
    ValueError
        If a side has no profile, or `allow` has an unknown name.

    Notes
    -----
    The sampling unit is the repeat, and each interval belongs to a ratio of medians. Its variance
    has two parts: between repeats, from resampling them (bootstrap), and between recordings of the
    same code. Three or more recordings per side show the second part. With fewer, the comparison
    uses the value that ``epprof calibrate`` measured on this machine and device, or else assumes
    one: 0.5 % for device times of GPUs, 1 % for the elapsed time of code whose work ran on one, and
    3 % for times measured on the host and on the host device. The value is larger if a recording
    drifts. Repeats that alternated (``--interleave``) are compared in pairs, in which the drift
    cancels; 0.25 % to 0.5 % remain. If the code is the same and recordings vary by no more than
    that, the probability of a wrong difference is 5 % for the total, for any row of `ops`, and for
    any of `kernels`.

    Other processes may have slowed down a recording, up to a bound that follows from its
    ``info["load"]``. If the recordings did not alternate, the intervals are wider by these bounds,
    in the direction in which each side would be faster without its load.

    Ten or more recordings per side without repeats count as repeats of one recording.

    Examples
    --------
    >>> import epprof_nb
    >>> from epprof_nb.testing import synthetic_profile
    >>> prof = synthetic_profile(activities=100)  # was not repeated
    >>> epprof_nb.compare(prof, prof).verdict
    'cannot be compared'
    """
    unknown = set(allow) - set(ALLOWED)
    if isinstance(allow, str) or unknown:
        raise ValueError(f"allow must list names of {', '.join(ALLOWED)}, not {allow!r}")
    before, after = _profiles(old, "old"), _profiles(new, "new")
    result = analysis.compare(
        before, after, allow=tuple(allow), names=names, spreads=_measured_spread
    )
    return Comparison(result, (before, after))


def _measured_spread(machine: str, devices: str) -> Spread | None:
    values = load_spread(machine, devices)
    return None if values is None else Spread(**values)


def _profiles(given: object, name: str) -> list[ProfileData]:
    profiles = [given] if isinstance(given, ProfileData) else given
    if not isinstance(profiles, Sequence) or not all(isinstance(p, ProfileData) for p in profiles):
        raise TypeError(f"{name} must be a profile or a list of profiles, not {given!r:.60}")
    if not profiles:
        raise ValueError(f"{name} has no profile")
    return list(profiles)
