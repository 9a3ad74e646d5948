"""The live view: the viewer of the static page with Python behind it.

A saved notebook must not contain a widget view: its model ends with the kernel, and without a model
front ends show an error over the output. The widget therefore has a separate transient display. It
is shown first, so that it appears first; the static view follows and is saved. Once mounted, the
widget's front end moves into the place of the static view and reports back, and the transient
display is cleared. If no front end reports, the next cell clears it. When the front end finds its
output cleared, it reports that too, and the view is closed.
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.util.transient_display import TransientDisplay
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.open_views import Execution, WidgetRegistry
from epprof_nb.views.widget.requests import handle, is_request
from epprof_nb.views.widget.selection_state import SelectionState
from epprof_nb.views.widget.trace_download import trace
from epprof_nb.views.wire.live_messages import first_view_message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from IPython.core.interactiveshell import InteractiveShell

    from epprof_nb.views.widget.linked_views import Link

_registry = WidgetRegistry()


class LiveView(anywidget.AnyWidget):
    """A view that loads the events of each window from Python.

    Parameters
    ----------
    profile
        The profile to show.
    tab
        Tab to open, see `epprof_nb.views.view.View.tab_to_open`.
    select
        Rows to select initially, see `LiveView.select`.
    write_trace
        Function that writes the profile as a Chrome trace.
    link
        Group of views that zoom and move together.

    Attributes
    ----------
    selections
        Selections of the view, with its view model.
    mark
        Id of the view.
    place
        Id of the static page whose place the view takes; a new one each time it is shown.
    first
        The first view, empty once the widget is mounted.
    """

    _esm = files("epprof_nb.views").joinpath("static", "widget.js").read_text("utf-8")
    mark = traitlets.Unicode().tag(sync=True)
    place = traitlets.Unicode().tag(sync=True)
    tab = traitlets.Unicode("timeline").tag(sync=True)
    first = traitlets.Bytes().tag(sync=True)
    link = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)

    def __init__(
        self,
        profile: ProfileData,
        *,
        tab: str,
        select: pd.DataFrame | None = None,
        write_trace: Callable[[Path], None] | None = None,
        link: Link | None = None,
    ) -> None:
        also_shown = None if link is None else (link.low, link.high)
        self.selections = Selections(ViewModel(profile, also_shown=also_shown))
        self._state = SelectionState(self.selections)
        self._write_trace = write_trace
        if select is not None:
            self._state.select_rows(select)
        # The first view is part of the widget's state: a request for it would have to wait until
        # the cell has finished.
        first = first_view_message(self.selections.view_model, self.selections.initial)
        super().__init__(
            mark=uuid.uuid4().hex, tab=tab, first=first,
            link=None if link is None else link.to_json(),
        )  # fmt: skip
        self._display: TransientDisplay | None = None
        self._make_page: Callable[..., dict[str, Any]] | None = None
        self._shown_in = 0
        self.on_msg(self._on_message)

    @property
    def selection(self) -> pd.DataFrame:
        """The activities selected in the view; all activities if nothing is selected.

        An op selects the activities launched by it and by the ops below it. An activity or API call
        selects the activities with its correlation id. A search or a row of the breakdown selects
        the activities that it highlights. If a time range is selected, only activities that overlap
        it are returned; rows are not clipped. The index is the index of `Profile.activities`.
        """
        return self._state.to_frame()

    @property
    def selected_span(self) -> tuple[int, int] | None:
        """Start and end of the time range selected on the timeline, ns; None if there is none."""
        return self._state.time_range

    def select(self, frame: pd.DataFrame | None) -> None:
        """Select the rows of a DataFrame in the view and scroll to them.

        Parameters
        ----------
        frame
            Rows of `Profile.activities`, `Profile.ops` or `Profile.api_calls`, filtered or sorted;
            None clears the selection.

        Raises
        ------
        TypeError, ValueError
            If the rows are not rows of this profile. The message says what to pass instead.
        """
        query = self._state.select_rows(frame)
        self.send({"type": "select", "selection": query})

    def close(self) -> None:
        """Show the static view again, and release the profile and everything computed from it."""
        if self.comm is not None:
            self.send({"type": "close"})
        super().close()
        # The layout is a separate widget; it would keep the view alive in the front end.
        self.layout.close()
        # The profile belongs to the user; release what this view computed from it.
        self.selections = Selections(ViewModel(ProfileData()))
        self._state = SelectionState(self.selections)
        self._make_page = self._write_trace = None
        _registry.remove(self)

    def show(self, make_page: Callable[..., dict[str, Any]]) -> None:
        """Display the live view, then the static page that is saved and whose place it takes.

        Parameters
        ----------
        make_page
            ``make_page(mount_id=...)`` returns the MIME bundle of the page.
        """
        shell = _shell()
        self.place = uuid.uuid4().hex
        if self.display_in(TransientDisplay(shell.display_pub)):
            _before_next_cell(self.clear_display)
            # The kernel sends messages on another thread, which the computation of the page would
            # starve. Flushing waits until they are sent.
            sys.stdout.flush()
        shell.display_pub.publish(make_page(mount_id=self.place), {})
        self._make_page = make_page
        self._shown_in = shell.execution_count
        _registry.add(self, Execution.current(shell))
        shell.events.register("pre_run_cell", _close_replaced)

    def _ipython_display_(self) -> None:
        """Move the view to this cell; do nothing in the cell that created it."""
        shell = _shell()
        if self._make_page is None:
            closed = "This live view is closed. Call .timeline().widget() again to open a new one."
            shell.display_pub.publish({"text/plain": closed}, {})
        elif self._shown_in != shell.execution_count:
            self.show(self._make_page)

    def display_in(self, display: TransientDisplay) -> bool:
        """Show the widget in `display`; return False if widgets are not available."""
        bundle = self._repr_mimebundle_()
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        if not data:
            return False
        # A front end without widgets would show the text.
        display.show({kind: v for kind, v in data.items() if kind != "text/plain"}, metadata)
        self._display = display
        return True

    def clear_display(self) -> None:
        """Clear the transient display of the widget, so that it is not saved."""
        self.first = b""
        if self._display is not None:
            self._display.clear()

    def _on_message(self, _: object, content: Any, __: object) -> None:  # noqa: ANN401
        kind = content.get("type") if isinstance(content, dict) else None
        if kind == "mounted":
            self.clear_display()
        elif kind == "closed":
            self.close()
        elif kind == "trace" or is_request(kind):
            response = (
                trace(self.selections.view_model.profile, self._write_trace)
                if kind == "trace"
                else handle(self.selections, content)
            )
            self.send(
                {**response.content, "type": kind, "request": content.get("request")},
                buffers=[] if response.data is None else [response.data],
            )
        else:
            try:
                if kind != "selected":
                    raise ValueError("the type of the message is unknown")  # noqa: TRY301
                self._state.on_frontend_selection(content)
            except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
                self.send({"type": "error", "error": f"{type(error).__name__}: {error}"[:1000]})


def _close_replaced(*_: object) -> None:
    _registry.close_replaced(Execution.current(_shell()))


def _before_next_cell(function: Callable[[], None]) -> None:
    """Call `function` once, before the next cell runs."""
    events = _shell().events

    def hook(*_: object) -> None:
        with contextlib.suppress(ValueError):
            events.unregister("pre_run_cell", hook)
        function()

    events.register("pre_run_cell", hook)


def _shell() -> InteractiveShell:
    from IPython.core.interactiveshell import InteractiveShell

    return InteractiveShell.instance()
