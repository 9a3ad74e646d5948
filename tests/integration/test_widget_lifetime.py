"""What a live view holds, and that it lets go of it when it is closed."""

from __future__ import annotations

import gc
import weakref

import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views import widget


@pytest.fixture(autouse=True)
def _unpublished(shell, monkeypatch):
    monkeypatch.setattr(shell.display_pub, "publish", lambda *_, **__: None)
    yield
    while widget._live:
        widget._live[-1].close()


def test_a_closed_view_frees_its_profile_though_its_name_stays(shell):
    profile = synthetic_profile(activities=200)
    freed = weakref.ref(profile)
    live = profile.timeline().widget()
    assert len(live.selection) == 200
    del profile
    gc.collect()
    assert freed() is not None
    live.close()
    shell.run_cell("None")  # what waited for the next cell is done with it
    gc.collect()
    assert freed() is None
    assert len(live.selection) == 0


def test_closing_one_view_leaves_the_others():
    profile = synthetic_profile(activities=200)
    one, two = profile.timeline().widget(), profile.timeline().widget()
    one.close()
    one.close()
    assert list(widget._live) == [two]
    assert len(two.selection) == 200


def test_the_oldest_of_many_views_is_closed():
    profile = synthetic_profile(activities=200)
    views = [profile.timeline().widget() for _ in range(widget._MOST_LIVE + 2)]
    assert list(widget._live) == views[2:]
    assert len(views[0].selection) == 0
    assert len(views[2].selection) == 200
