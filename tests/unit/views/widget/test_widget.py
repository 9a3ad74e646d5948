"""Displaying and closing a live view."""

from __future__ import annotations

import gc
import io
import weakref
from types import SimpleNamespace

import pytest

from epprof_nb.testing import synthetic_profile

pytest.importorskip("anywidget")


def test_closing_a_view_frees_what_was_computed_of_the_profile():
    from epprof_nb.views.widget.widget import LiveView

    live = LiveView(synthetic_profile(activities=2000), tab="timeline")
    series = weakref.ref(live.selections.view_model.layout.activities.row_index)
    layout = live.layout
    live.close()
    gc.collect()
    assert series() is None
    # A widget of its own, that would keep the view in the front end.
    assert layout.comm is None


def test_the_first_picture_comes_with_the_widget():
    from epprof_nb.views.widget.widget import LiveView

    live = LiveView(synthetic_profile(activities=2000), tab="timeline")
    assert len(live.first) > 1000
    live.clear_display()
    assert live.first == b""
    live.close()


def test_the_widget_is_sent_before_the_static_page_is_made(monkeypatch):
    from epprof_nb.views.view import View
    from epprof_nb.views.widget import widget

    happened = []

    class Screen(io.StringIO):
        def flush(self):
            happened.append("flushed")

    def publish(data, _metadata, **options):
        happened.append((sorted(data), options.get("update", False)))

    shell = SimpleNamespace(
        display_pub=SimpleNamespace(publish=publish),
        events=SimpleNamespace(register=lambda *_: None),
        execution_count=1,
    )
    monkeypatch.setattr(widget, "_shell", lambda: shell)
    monkeypatch.setattr("sys.stdout", Screen())
    view = View(synthetic_profile(activities=200))
    made = view.mimebundle
    monkeypatch.setattr(view, "mimebundle", lambda **o: happened.append("made") or made(**o))
    live = view.widget()
    live.clear_display()
    live.clear_display()
    (widgets, updated), *rest = happened
    assert widgets == ["application/vnd.jupyter.widget-view+json"]
    assert not updated
    assert rest == [
        "flushed",
        "made",
        (["image/png", "text/html", "text/plain"], False),
        ([], True),  # emptied once
    ]
    live.close()
