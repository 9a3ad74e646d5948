"""Views of a job: the profiles of several processes on one clock."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.atomic_file import replacing
from epprof_nb.util.cached import cached_property
from epprof_nb.util.format import plural
from epprof_nb.util.html import to_base64
from epprof_nb.util.printable import printable
from epprof_nb.views.renderers import job as renderers
from epprof_nb.views.renderers.job_model import DAMAGED, ShownJob, noun_of, shown_job
from epprof_nb.views.renderers.job_picture import draw
from epprof_nb.views.view_model import ViewModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.data.profile_data import ProfileData

MAX_TIMELINE_RANKS = 8
"""Maximum number of ranks in the timeline of a page."""


class JobView:
    """A job as shown in notebooks and on pages.

    Parameters
    ----------
    profiles
        Rank to profile; may load them on access.
    bounds
        Rank to the start and end of its profile, ns on the job's clock, which begins at 0. Ranks
        without a profile have no entry.
    ranks
        One row per process, also for those without a profile: ``rank`` (int64), and if known
        ``name`` (else ``rank 3``), ``hostname``, ``pid``, ``command``,
        ``state``, ``reason``, ``busy_ns`` and ``idle_ns``.
    collectives
        One row per collective and rank: ``collective`` (its number), ``rank``, ``kind``,
        ``arrive_ns`` on the job's clock and ``waited_ns``; None if not known.
    stragglers
        The ranks that the others waited for, those with the longest waits first.
    sentences
        Sentences to show above the picture, such as on stragglers; backticks enclose code.
    notes
        Sentences to show below.
    window
        Function that returns one profile of some ranks on the job's clock, for the timeline of
        pages; None for pages without one.
    """

    def __init__(
        self,
        profiles: Mapping[int, ProfileData],
        *,
        bounds: Mapping[int, tuple[int, int]],
        ranks: ResultTable,
        collectives: ResultTable | None = None,
        stragglers: Sequence[int] = (),
        sentences: Sequence[str] = (),
        notes: Sequence[str] = (),
        window: Callable[[Sequence[int]], ProfileData] | None = None,
    ) -> None:
        self._late, self._window = stragglers, window
        self._make = partial(
            shown_job,
            profiles,
            bounds=bounds,
            ranks=ranks,
            collectives=collectives,
            stragglers=stragglers,
            sentences=sentences,
            notes=notes,
        )

    @cached_property
    def shown(self) -> ShownJob:
        """Everything that the view shows."""
        return self._make()

    @property
    def text(self) -> str:
        """The view as text."""
        return printable(renderers.as_text(self.shown))

    def mimebundle(self) -> dict[str, Any]:
        """Return the view as HTML, an image (base64) and text, for the front end to choose from."""
        bundle = {"text/html": renderers.as_html(self.shown), "text/plain": self.text}
        if self.shown.rows:
            bundle["image/png"] = to_base64(draw(self.shown).png())
        return bundle

    def write_html(self, path: str | PathLike[str]) -> None:
        """Write the view as one HTML page that needs neither kernel nor network.

        It has a timeline of up to 8 ranks: the stragglers, then the first ranks.
        """
        ranks = self._timeline_ranks()
        timeline, about = None, ""
        if self._window and ranks and self.shown.end_ns > 0:
            try:
                timeline = ViewModel(self._window(ranks))
            except ProfileFileError as error:
                self.shown.notes.append(
                    f"The page has no timeline, because a part cannot be read: {error}"
                )
        if timeline is not None:
            shown = [process for row in self.shown.rows for process in row.processes]
            noun = noun_of(process for process in shown if process.rank in ranks)
            about = f"Timeline of {plural(len(ranks), *noun)}: {', '.join(map(str, ranks))}"
            if len(ranks) < len(shown):
                about += ". `job.window(begin_ns, end_ns, ranks=[...]).timeline()` shows others"
        with replacing(path) as file:
            renderers.write_page(self.shown, file, timeline, f"{about}.")

    def _timeline_ranks(self) -> list[int]:
        of_rows = [process for row in self.shown.rows for process in row.processes]
        recorded = [process.rank for process in of_rows if process.state != DAMAGED]
        late = [rank for rank in self._late if rank in recorded]
        return sorted(list(dict.fromkeys([*late, *recorded]))[:MAX_TIMELINE_RANKS])

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return self.mimebundle()
