"""A live view lets go of what it computed, and tells the front end to do so."""

from __future__ import annotations

import gc
import weakref

import pytest

from epprof_nb.testing import synthetic_profile

pytest.importorskip("anywidget")


def test_closing_a_view_frees_what_was_computed_of_the_profile():
    from epprof_nb.views.widget import LiveView

    live = LiveView(synthetic_profile(activities=2000), tab="timeline", mark="m")
    series = weakref.ref(live.prepared.layout.activities.code)
    live.close()
    gc.collect()
    assert series() is None


def test_the_first_picture_comes_with_the_widget():
    from epprof_nb.views.widget import LiveView

    live = LiveView(synthetic_profile(activities=2000), tab="timeline", mark="m")
    assert len(live.first) > 1000
    live.empty_display()
    assert live.first == b""
    live.close()
