"""What the views of one profile share, each computed once and only when asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis import counters, device_work, findings, line_totals, summary
from epprof_nb.analysis.by_path import by_path
from epprof_nb.analysis.device_activity import Counted
from epprof_nb.analysis.idle import gaps
from epprof_nb.analysis.index import Shared
from epprof_nb.analysis.range_sums import Adding, Sums
from epprof_nb.analysis.time_chunks import Moments
from epprof_nb.arrays.intervals import EARLIEST, LATEST
from epprof_nb.util.cached import Kept, once
from epprof_nb.views.queries import tables
from epprof_nb.views.queries.selections import Selections
from epprof_nb.views.timeline import lanes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from epprof_nb.data.profile_data import ProfileData


class Prepared:
    """A profile with its summary, findings, op tree, layout and breakdowns.

    Parameters
    ----------
    profile
        The profile; it must not change while this is in use.
    """

    def __init__(self, profile: ProfileData) -> None:
        self.profile: ProfileData = profile
        self._breakdowns = Kept(self._break_down)
        self._counted: Kept[int, Counted] = Kept(
            lambda device: Counted(profile, device, self.shared)
        )

    @once
    def shared(self) -> Shared:
        """What the breakdowns and the summary are made from."""
        return Shared(self.profile)

    @once
    def work(self) -> device_work.Work:
        """Device work under each op."""
        return device_work.Work(self.profile, self.shared)

    @once
    def layout(self) -> lanes.Layout:
        """Lanes, and each event's place in them."""
        return lanes.build(self.profile, self.work)

    @once
    def time_range(self) -> list[int]:
        """First and last nanosecond to show: the profile's length, and what sticks out of it."""
        spans = [place.series.span for place in self.layout.places().values()]
        low = max(min(0, *(start for start, _ in spans)), EARLIEST)
        high = min(max(self.profile.wall_ns, *(end for _, end in spans)), LATEST)
        return [low, max(high, low + 1)]

    def hurry(self) -> None:
        """Compute what the first picture needs, on several threads."""
        device_work = self.work
        with ThreadPoolExecutor(2) as pool:
            kinds, time = (
                pool.submit(getattr, device_work, name) for name in ("kinds", "time_until")
            )
            _ = self.layout
            kinds.result()
            time.result()

    @once
    def gaps(self) -> pd.DataFrame:
        """The idle stretches worth a word; see `epprof_nb.analysis.idle.gaps`."""
        return gaps(self.profile, summary.IDLE_GAP_NS, shared=self.shared)

    @once
    def summary(self) -> summary.Summary:
        """The numbers of the summary line."""
        return summary.summarise(self.profile, shared=self.shared, gaps=self.gaps)

    @once
    def findings(self) -> list[findings.Finding]:
        """What to change first."""
        return findings.findings(self)

    @once
    def functions(self) -> list[line_totals.LineTotals]:
        """Device work of ops whose function stands in a file."""
        return line_totals.function_totals(self.profile, self.work)

    def counted(self, device: int) -> Counted:
        """What is counted of a device, in order of time."""
        return self._counted[device]

    @once
    def tracks(self) -> list[dict[str, Any]]:
        """Which counters there are; see `epprof_nb.analysis.counters.tracks`."""
        return counters.tracks(self)

    @once
    def counters(self) -> dict[str, npt.NDArray[np.int64]]:
        """The columns of the counters."""
        return counters.columns(self)

    @once
    def lines(self) -> list[line_totals.LineTotals]:
        """Device work at each line of the cells."""
        return line_totals.line_totals(self.profile, self.work)

    def breakdown(self, by: str) -> pd.DataFrame:
        """Return one of the `BREAKDOWNS` of `views.queries.tables`, computed once."""
        return self._breakdowns[by]

    def _break_down(self, by: str) -> pd.DataFrame:
        return tables.BREAKDOWNS[by](self.profile, shared=self.shared)

    @once
    def paths(self) -> pd.DataFrame:
        """The tree of the breakdowns."""
        return by_path(self.profile, shared=self.shared)

    @property
    def by_op(self) -> pd.DataFrame:
        """The breakdown by op."""
        return self.breakdown("op")

    @once
    def moments(self) -> Moments:
        """The activities by time."""
        return Moments(self.profile.tables["activities"])

    @once
    def sums(self) -> list[Sums]:
        """What each of the pieces of `moments` adds up to."""
        return Adding(self).of_each(self.moments.pieces)

    @once
    def device_work(self) -> npt.NDArray[np.bool_]:
        """Which activities keep a device busy."""
        return self.shared.work

    @once
    def selections(self) -> Selections:
        """What is selected, and where it is."""
        return Selections(self)
