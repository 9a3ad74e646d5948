"""The live view: the static page's viewer with Python behind it.

What is saved in a notebook must not hold a widget: without its model, which ends with the kernel,
a front end paints an error over it. So the widget has a display of its own, shown first because it
paints first; the static view follows and is what is saved. The widget's front end moves itself into
the static view's place and says so; then its display is emptied. Where no front end answers, the
next cell empties it. When the front end finds the output cleared, it says so, and the view closes.
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.util.transient_display import EmptiedDisplay
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.registry import Execution, OpenViews
from epprof_nb.views.widget.requests import answer, answers
from epprof_nb.views.widget.selection_state import Choice
from epprof_nb.views.wire.payload import pack_first

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from IPython.core.interactiveshell import InteractiveShell

    from epprof_nb.views.view import View

_open = OpenViews()


class LiveView(anywidget.AnyWidget):
    """A view whose zooming asks Python for the events of the window.

    Parameters
    ----------
    profile
        What to show.
    tab
        The view it opens on.
    mark
        Names the view; the static page whose place it takes has a mark of its own each time the
        view is shown.
    select
        Rows to light from the start, see `LiveView.select`.
    """

    _esm = files("epprof_nb.views").joinpath("static", "widget.js").read_text("utf-8")
    mark = traitlets.Unicode().tag(sync=True)
    place = traitlets.Unicode().tag(sync=True)
    tab = traitlets.Unicode("timeline").tag(sync=True)
    first = traitlets.Bytes().tag(sync=True)

    def __init__(
        self, profile: ProfileData, *, tab: str, mark: str, select: pd.DataFrame | None = None
    ) -> None:
        self.prepared = ViewModel(profile)
        self._choice = Choice(self.prepared)
        if select is not None:
            self._choice.give(select)
        # The first picture comes with the widget: to ask for it the front end would have to wait
        # until the cell has ended.
        super().__init__(mark=mark, tab=tab, first=pack_first(self.prepared))
        self._brought_by: EmptiedDisplay | None = None
        self._page: Callable[..., dict[str, Any]] | None = None
        self._shown_in = 0
        self.on_msg(self._answer)

    @property
    def selection(self) -> pd.DataFrame:
        """The activities selected in the view; all of them where nothing is selected.

        An op selects what it and the ops below it launched, an activity or API call all that
        its correlation id ties together, a search or a row of the breakdown what it lights. Of
        these, a span marked on the timeline leaves those with a part in it, as whole rows. The
        index is that of `Profile.activities`.
        """
        return self._choice.frame()

    @property
    def selected_span(self) -> tuple[int, int] | None:
        """Start and end of the span marked on the timeline, ns; None where none is."""
        return self._choice.span

    def select(self, frame: pd.DataFrame | None) -> None:
        """Light the rows of a DataFrame in the view, and go to where they are.

        Parameters
        ----------
        frame
            Rows of `Profile.activities`, `Profile.ops` or `Profile.api_calls`, filtered or sorted
            as you like; None clears the selection.

        Raises
        ------
        TypeError, ValueError
            For what holds no rows of this profile; the message says what to pass.
        """
        wanted = self._choice.give(frame)
        self.send({"type": "select", "selection": wanted})

    def close(self) -> None:
        """Show the static view again; the profile, and what was computed of it, is let go."""
        if self.comm is not None:
            self.send({"type": "close"})
        super().close()
        # A widget's layout is a widget too: in the front end it would hold all of the view.
        self.layout.close()
        # The profile is the user's; everything that hangs on it is the view's.
        self.prepared = ViewModel(ProfileData())
        self._choice = Choice(self.prepared)
        self._page = None
        _open.remove(self)

    def show(self, page: Callable[..., dict[str, Any]]) -> None:
        """Display the live view, then the static page that is saved and whose place it takes.

        Parameters
        ----------
        page
            ``page(mark=...)`` returns the MIME bundle of the page.
        """
        shell = _shell()
        self.place = uuid.uuid4().hex
        if self.bring(EmptiedDisplay(shell.display_pub)):
            _before_next_cell(self.empty_display)
            # A kernel sends from a thread of its own, which what follows would keep from its
            # turn; a flush waits until everything before it is sent.
            sys.stdout.flush()
        shell.display_pub.publish(page(mark=self.place), {})
        self._page = page
        self._shown_in = shell.execution_count
        _open.add(self, Execution.current(shell))

    def _ipython_display_(self) -> None:
        """Show the view here, and no longer where it was; in the cell that shows it, nothing."""
        shell = _shell()
        if self._page is None:
            closed = "This live view is closed; .timeline().widget() of its profile opens another."
            shell.display_pub.publish({"text/plain": closed}, {})
        elif self._shown_in != shell.execution_count:
            self.show(self._page)

    def bring(self, display: EmptiedDisplay) -> bool:
        """Show the widget in `display`, where there can be widgets; return whether there can."""
        bundle = self._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if not data:
            return False
        # A front end without widgets would show the text.
        display.show({kind: v for kind, v in data.items() if kind != "text/plain"}, metadata)
        self._brought_by = display
        return True

    def empty_display(self) -> None:
        """Empty the display that brought the widget, so that it is not saved."""
        self.first = b""
        if self._brought_by is not None:
            self._brought_by.clear()

    def _answer(self, _: object, content: dict[str, Any], __: object) -> None:
        kind = content.get("type")
        if kind == "mounted":
            self.empty_display()
        elif kind == "closed":
            self.close()
        elif kind == "selected":
            self._choice.told(content)
        elif answers(kind):
            reply = answer(self.prepared, content)
            self.send(
                {**reply.content, "type": kind, "request": content.get("request")},
                buffers=[] if reply.data is None else [reply.data],
            )


def show(view: View) -> LiveView:
    """Display a view with Python behind it."""
    live = LiveView(view.profile, tab=view.opens, mark=uuid.uuid4().hex, select=view.select)
    live.show(partial(view.mimebundle, prepared=live.prepared))
    _shell().events.register("pre_run_cell", _close_replaced)
    return live


def _close_replaced(*_: object) -> None:
    _open.close_replaced(Execution.current(_shell()))


def _before_next_cell(act: Callable[[], None]) -> None:
    """Call `act` once, before the next cell runs."""
    events = _shell().events

    def hook(*_: object) -> None:
        with contextlib.suppress(ValueError):
            events.unregister("pre_run_cell", hook)
        act()

    events.register("pre_run_cell", hook)


def _shell() -> InteractiveShell:
    from IPython.core.interactiveshell import InteractiveShell

    return InteractiveShell.instance()
