"""View: a profile on the screen, whatever shows it; and the page on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.breakdowns import BREAKDOWNS
from epprof_nb.analysis.by_op import by_line
from epprof_nb.analysis.by_path import by_path
from epprof_nb.util.progress_bar import steps
from epprof_nb.views.prefetch import for_page
from epprof_nb.views.queries.frame_rows import rows_of_frame
from epprof_nb.views.renderers.html import Tab, block, page
from epprof_nb.views.renderers.png import as_png
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.payload import to_base64

if TYPE_CHECKING:
    from os import PathLike

    import pandas as pd

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.widget.widget import LiveView


class View:
    """A profile as notebooks and other front ends show it.

    Parameters
    ----------
    profile
        What to show.
    tab
        The view it opens on: ``"timeline"``, ``"breakdown"`` or ``"source"``.
    by
        Table that the breakdown opens on: a key of
        `epprof_nb.analysis.breakdowns.BREAKDOWNS`, or ``"tree"``.
    select
        Rows of the profile's tables to light in the timeline; see `Profile.timeline`.

    Notes
    -----
    Showing a view saves a static page in the notebook; it needs no kernel to be read again.
    """

    def __init__(
        self,
        profile: ProfileData,
        tab: Tab = "timeline",
        *,
        by: str = "op",
        select: pd.DataFrame | None = None,
    ) -> None:
        if by not in (*BREAKDOWNS, "tree"):
            known = ", ".join((*BREAKDOWNS, "tree"))
            raise ValueError(f"by must be one of {known}, not {by!r}")
        self.profile = profile
        self.tab = tab
        self.by = by
        self.select = select
        # What cannot be shown is said at once, not when a front end asks for it.
        self._given = {} if select is None else dict([rows_of_frame(profile, select)])

    def mimebundle(
        self, *, mark: str | None = None, prepared: ViewModel | None = None
    ) -> dict[str, Any]:
        """Return what a front end chooses from: HTML, a picture (base64) and text.

        Parameters
        ----------
        mark
            Where given, a live widget of this mark takes the place of the HTML while it lives.
        prepared
            Where given, what is computed of the profile already, its selection included.
        """
        if prepared is None:
            prepared = ViewModel(self.profile)
            prepared.selections.give(self._given)
        with for_page(prepared):
            png = as_png(prepared)
            return {
                "text/html": block(prepared, png, tab=self.opens, mark=mark),
                "image/png": to_base64(png),
                "text/plain": as_text(prepared),
            }

    @property
    def opens(self) -> str:
        """The tab and, for the breakdown, its table: what the front end is told to open on."""
        return f"{self.tab}:{self.by}" if self.tab == "breakdown" else self.tab

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return self.mimebundle()

    def to_frame(self) -> pd.DataFrame:
        """Return the rows behind the view: activities, the table or tree it opens on, or lines."""
        if self.tab == "breakdown":
            breakdown = by_path if self.by == "tree" else BREAKDOWNS[self.by]
            return breakdown(self.profile)
        return by_line(self.profile) if self.tab == "source" else self.profile.activities

    def widget(self) -> LiveView:
        """Show the view with Python behind it: zooming in loads every event.

        Returns
        -------
        live
            The widget; its ``selection`` is a DataFrame of what is selected in the view.
        """
        from epprof_nb.views.widget.widget import show

        return show(self)


def write_html(profile: ProfileData, path: str | PathLike[str]) -> None:
    """Write the profile as one HTML page that needs neither kernel nor network."""
    prepared = ViewModel(profile)
    with steps(f"Writing {Path(path).name}", 4, " steps") as bar, for_page(prepared):
        for part in ("layout", "findings", "line_totals"):
            getattr(prepared, part)  # computed once, and kept
            bar.update()
        Path(path).write_text(page(prepared), encoding="utf-8")
        bar.update()
