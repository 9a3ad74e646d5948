"""Views of a profile for notebooks and other front ends, and the HTML page on disk."""

from __future__ import annotations

from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.wall_time import timed_tables
from epprof_nb.analysis.breakdowns.by_line import line_table
from epprof_nb.analysis.breakdowns.registry import BREAKDOWNS, TREES, breakdown
from epprof_nb.analysis.summary.profile_origin import title_of
from epprof_nb.files.atomic_file import replacing
from epprof_nb.util.html import to_base64
from epprof_nb.util.progress_bar import progress_bar
from epprof_nb.views.prefetch import prefetch_for_page
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.renderers.html import Around, Tab, notebook_html, write_page
from epprof_nb.views.renderers.png import as_pngs
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.sensitivity import SensitivityView
from epprof_nb.views.view_model import ViewModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    import pandas as pd

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.widget.linked_views import Link
    from epprof_nb.views.widget.widget import LiveView


MAX_ROWS_WITH_FINDINGS = 2_000_000
"""Ops, activities and API calls up to which the page in a notebook has findings.

The findings of a larger profile take longer than the rest of the page.
"""
_OF_MODULES = ("module", "module_tree")


class View:
    """A profile as shown in notebooks and other front ends.

    Parameters
    ----------
    profile
        The profile to show.
    tab
        Tab to open: ``"timeline"``, ``"breakdown"`` or ``"source"``.
    by
        Table to open in the breakdown: a key of
        `epprof_nb.analysis.breakdowns.registry.BREAKDOWNS` or
        `epprof_nb.analysis.breakdowns.registry.TREES`.
    select
        Rows of the profile's tables to highlight in the timeline; see `Profile.timeline`.
    write_trace
        Function that writes the profile as a Chrome trace, for the button of the live view.

    Raises
    ------
    TypeError, ValueError
        If `by` is unknown, or `select` has no rows of this profile.

    Notes
    -----
    Displaying a view saves a static page in the notebook, which can be read without a kernel.
    """

    def __init__(
        self,
        profile: ProfileData,
        tab: Tab = "timeline",
        *,
        by: str = "op",
        select: pd.DataFrame | None = None,
        write_trace: Callable[[Path], None] | None = None,
    ) -> None:
        if by not in BREAKDOWNS | TREES:
            known = ", ".join(BREAKDOWNS | TREES)
            raise ValueError(f"by must be one of {known}, not {by!r}")
        self.profile = profile
        self.tab = tab
        self.by = by
        self.select = select
        self._write_trace = write_trace
        # Invalid rows raise here rather than when a front end displays the view.
        self._selected_rows: dict[str, IntArray] = {}
        if select is not None:
            from epprof_nb.views.queries.frame_rows import rows_of_frame

            self._selected_rows = dict([rows_of_frame(profile, select)])

    def mimebundle(
        self, *, mount_id: str | None = None, selections: Selections | None = None
    ) -> dict[str, Any]:
        """Return the view as HTML and text, for the front end to choose from.

        A timeline is an image, too (base64).

        Without a live view, which is there before its page, the page of a large profile leaves the
        findings out.

        Parameters
        ----------
        mount_id
            Id of the place of the HTML, for a live widget to take.
        selections
            Selections of a live view, whose view model and initial selection are reused.
        """
        if selections is None:
            rows = sum(map(len, timed_tables(self.profile)))
            with_findings = rows <= MAX_ROWS_WITH_FINDINGS
            selections = Selections(ViewModel(self.profile, with_findings=with_findings))
            selections.set_rows(self._selected_rows)
        view_model = selections.view_model
        with prefetch_for_page(view_model):
            # The picture is of the timeline; other tabs have a table instead.
            whole, body = as_pngs(view_model) if self.tab == "timeline" else (b"", b"")
            html = notebook_html(
                view_model, body, selections.initial, tab=self.tab_to_open, mount_id=mount_id
            )
            text = as_text(view_model)
        picture = {"image/png": to_base64(whole)} if whole else {}
        return {"text/html": html, **picture, "text/plain": text}

    @property
    def tab_to_open(self) -> str:
        """The tab and, for a breakdown, its table, as the viewer expects them."""
        if self.tab != "breakdown":
            return self.tab
        return f"{'modules' if self.by in _OF_MODULES else self.tab}:{self.by}"

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return self.mimebundle()

    def to_frame(self) -> pd.DataFrame:
        """Return the rows behind the view: the activities, or the breakdown that it opens."""
        index = ProfileIndex(self.profile)
        if self.tab == "breakdown":
            return breakdown(index, self.by).to_frame()
        if self.tab == "source":
            return line_table(index, inclusive=False).to_frame()
        return self.profile.activities

    def widget(self, *, link: Link | None = None) -> LiveView:
        """Show the view with Python behind it: zooming in loads every event.

        Parameters
        ----------
        link
            Group of views that zoom and move together.

        Returns
        -------
        live
            The widget; its ``selection`` is a DataFrame of the activities selected in the view.
        """
        from epprof_nb.views.widget.widget import LiveView

        live = LiveView(
            self.profile,
            tab=self.tab_to_open,
            select=self.select,
            write_trace=self._write_trace,
            link=link,
        )
        live.show(partial(self.mimebundle, selections=live.selections))
        return live


def write_html(profile: ProfileData, path: str | PathLike[str]) -> None:
    """Write the profile as one HTML page that needs neither kernel nor network."""
    view_model = ViewModel(profile)
    with (
        progress_bar(f"Writing {Path(path).name}", 4, " steps") as bar,
        prefetch_for_page(view_model),
    ):
        for part in ("layout", "findings", "line_totals"):
            getattr(view_model, part)  # computed and cached
            bar.update()
        with replacing(path) as file:
            write_page(view_model, file, _around(view_model))
        bar.update()


def _around(view_model: ViewModel) -> Around | None:
    """Return the HTML above the viewer of a page: the experiment, if there was one."""
    if "experiment" not in view_model.profile.info:
        return None
    title = title_of(view_model.profile)
    experiment = SensitivityView(view_model.profile).as_html()
    above = f"<h1>{escape(title)}</h1>{experiment}"
    return Around(title, above, "")
