"""ViewModel: the state that the views of one profile share, each part computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.op_tree import UNNAMED
from epprof_nb.analysis.breakdowns import registry as breakdowns
from epprof_nb.analysis.breakdowns.bin_sums import BinSums, bin_sums
from epprof_nb.analysis.breakdowns.captured_work import captured_work
from epprof_nb.analysis.breakdowns.line_totals import LineTotals, function_totals, line_totals
from epprof_nb.analysis.findings import ranking
from epprof_nb.analysis.frameworks.operator_colour_order import Operators, rank_operators
from epprof_nb.analysis.memory import memory_curve
from epprof_nb.analysis.summary.headline import Headline, headline_of
from epprof_nb.analysis.utilisation import counters
from epprof_nb.analysis.utilisation.counters import POINTS
from epprof_nb.arrays.intervals import EARLIEST, LATEST
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.cached import cached_property
from epprof_nb.util.thread_pool import ThreadPool
from epprof_nb.views.timeline import lanes
from epprof_nb.views.timeline.op_colours import operator_hues
from epprof_nb.views.timeline.with_statements import ops_of_with_statements, without_statements

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.findings.finding import Finding
    from epprof_nb.data.profile_data import ProfileData


FINDINGS_LEFT_OUT = "This picture of a large profile has no findings; `prof.insights()` has them."

_FAR = 10
"""Events outside of the profile by more than this many times its length are not shown."""

_MAX_BIN_ENTRIES = 20_000
"""Maximum number of sums by bin: about 60 kB compressed."""


class ViewModel:
    """A profile as the views show it: its lanes, time range and analyses.

    Parameters
    ----------
    profile
        The profile; it must not change while the view model is in use.
    also_shown
        Time range (ns) to show as well, if it extends beyond the profile.
    with_findings
        Whether views show the findings, which take longer than the rest of a view.

    Attributes
    ----------
    profile, index, with_findings
        The profile, its index with the results of all analyses, and the parameter.
    """

    def __init__(
        self,
        profile: ProfileData,
        *,
        also_shown: tuple[int, int] | None = None,
        with_findings: bool = True,
    ) -> None:
        self.profile = profile
        self.with_findings = with_findings
        self._also_shown = also_shown or (0, 0)
        self.index = ProfileIndex(profile)

    @cached_property
    def layout(self) -> lanes.TimelineLayout:
        """Lanes, and the place of each event in them."""
        return lanes.build_layout(self.profile, self.index)

    @cached_property
    def time_range(self) -> list[int]:
        """First and last nanosecond shown: the profile's length, and events outside of it.

        Events further outside than `_FAR` times the length come from a clock that jumped, and would
        hide all others.
        """
        bounds = [place.event_rows.time_bounds for place in self.layout.by_prefix().values()]
        wall = self.profile.wall_ns
        earliest, latest = (-_FAR * wall, (1 + _FAR) * wall) if wall > 0 else (EARLIEST, LATEST)
        low = max(min(0, *(start for start, _ in bounds)), earliest, EARLIEST)
        high = min(max(wall, *(end for _, end in bounds)), latest, LATEST)
        low, high = min(low, self._also_shown[0]), max(high, self._also_shown[1])
        return [low, max(high, low + 1)]

    @cached_property
    def events_outside(self) -> int:
        """Number of events that end outside of `time_range`; an op may begin long before it."""
        low, high = self.time_range
        outside = 0
        for place in self.layout.by_prefix().values():
            rows = place.event_rows
            if rows.time_bounds[0] < low or rows.time_bounds[1] > high:
                is_outside = (rows.end < low) | (rows.end > high)
                outside += int((is_outside & place.is_drawn).sum())
        return outside

    def warm_up_first_view(self) -> None:
        """Compute the parts that the first view needs, on several threads."""
        with ThreadPool(2) as pool:
            parts = [pool.submit(getattr, self.index, name) for name in ("kinds", "op_device_time")]
            _ = self.layout
            for part in parts:
                part.result()

    @cached_property
    def bin_sums(self) -> BinSums | None:
        """Device work by time bin, for pages; None if a single bin has too many names."""
        low, high = self.time_range
        return bin_sums(self.index, low, high, _MAX_BIN_ENTRIES)

    @property
    def headline(self) -> Headline:
        """The numbers above every view."""
        return self.index.cached(headline_of)

    @property
    def operators(self) -> Operators:
        """The operators of ONNX Runtime's nodes, or names of framework ops, by time."""
        return self.index.cached(rank_operators)

    @cached_property
    def hue_of_name(self) -> dict[str, int]:
        """Hue of each name of `operators`, in the same order."""
        names = [*dict.fromkeys(self.operators.names)]  # a module and its class may share one
        return dict(zip(names, operator_hues(names), strict=True))

    @cached_property
    def operator_hues(self) -> npt.NDArray[np.int64]:
        """Hue of each op's operator, -1 for none; see `operator_hues` of `op_colours`."""
        hues = [*map(self.hue_of_name.__getitem__, self.operators.names), MISSING]
        return np.array(hues, np.int64)[self.operators.ranks]

    @property
    def colours_operators(self) -> bool:
        """Whether pictures colour ops by their operators: there is no device work to show."""
        return not self.index.is_device_work.any() and bool(self.operators.names)

    @property
    def findings(self) -> list[Finding]:
        """The first findings: causes by descending gain, then hot lines and operators."""
        return self.index.cached(ranking.findings) if self.with_findings else []

    def breakdown(self, by: str) -> ResultTable:
        """Return one of the tables and trees of `epprof_nb.analysis.breakdowns.registry`."""
        return self.index.cached(breakdowns.breakdown, by)

    @property
    def by_op(self) -> ResultTable:
        """The breakdown by op."""
        return self.breakdown("op")

    @property
    def shown_ops(self) -> ResultTable:
        """The breakdown by op, with one row for a ``with epprof_nb.op(...)`` and its op."""
        return without_statements(self.by_op, self.index)

    @property
    def op_of_statement(self) -> dict[int, int]:
        """Row of each ``with`` statement that is not drawn to the row of its op."""
        return self.index.cached(ops_of_with_statements)

    @property
    def captured_work(self) -> ResultTable | None:
        """The ops that captured the work of graphs; None if there are none."""
        return self.index.cached(captured_work)

    def top_ops(self, count: int) -> list[tuple[str, int, int]]:
        """Return name, device time (ns) and executions of the ops that launched the most work.

        It excludes the device time of nested ops, so that none is counted twice.
        """
        by_op = self.by_op
        own = by_op["self_device_ns"]
        rows = np.argsort(-own, kind="stable")[:count]
        top = by_op.take(rows[own[rows] > 0])
        names = [name or UNNAMED for name in top.names("name").to_list()]
        return list(zip(names, top.values("self_device_ns"), top.values("count"), strict=True))

    def top_operators(self, count: int) -> list[tuple[str, int, int]]:
        """Return name, host time (ns) and recorded executions of the longest operators."""
        if self.operators.totals is not None:
            totals = sorted(self.operators.totals.items(), key=lambda total: -total[1][0])[:count]
            return [(name, host_ns, number) for name, (host_ns, number) in totals if host_ns]
        by_type = self.breakdown("op_type")
        time = dict.fromkeys(self.operators.names, 0)
        executions = dict.fromkeys(self.operators.names, 0)
        columns = (by_type.values(name) for name in ("op_type", "host_ns", "recorded"))
        for name, host_ns, recorded in zip(*columns, strict=True):
            if name in time:
                time[name] += host_ns or 0
                executions[name] += recorded
        top = sorted(time, key=lambda name: -time[name])[:count]
        return [(name, time[name], executions[name]) for name in top if time[name]]

    @property
    def line_totals(self) -> list[LineTotals]:
        """Device work of each line of the cells."""
        return self.index.cached(line_totals)

    @property
    def function_totals(self) -> list[LineTotals]:
        """Device work of each op whose function is defined in a file."""
        return self.index.cached(function_totals)

    @property
    def tracks(self) -> list[dict[str, Any]]:
        """The counters of the timeline: of devices, and of their memory."""
        return [
            *self.index.cached(counters.tracks),
            *self.index.cached(memory_curve.memory_tracks),
        ]

    @cached_property
    def counters(self) -> dict[str, npt.NDArray[np.int64]]:
        """The columns of the counters in the whole profile."""
        return self.counter_columns()

    def counter_columns(
        self, window: tuple[int, int] | None = None, points: int = POINTS
    ) -> dict[str, npt.NDArray[np.int64]]:
        """Return the columns of `tracks`, ``counter.<position>.<column>``.

        See `epprof_nb.analysis.utilisation.counters.columns` and
        `epprof_nb.analysis.memory.memory_curve.memory_columns`.
        """
        of_memory = memory_curve.memory_columns(self.index, window, points)
        first = len(self.tracks) - len(of_memory)
        return counters.columns(self.index, window, points) | {
            f"counter.{first + number}.{name}": values
            for number, columns in enumerate(of_memory)
            for name, values in columns.items()
        }
