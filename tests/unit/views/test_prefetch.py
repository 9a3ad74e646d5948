"""Prefetching does not change results or errors."""

import pytest

from epprof_nb.analysis.breakdowns import registry as breakdowns
from epprof_nb.testing import synthetic_profile
from epprof_nb.views import prefetch
from epprof_nb.views.view import View
from tests.helpers.training import training


@pytest.fixture(scope="module", params=["synthetic", "modules"])
def made(request):
    return synthetic_profile(activities=3_000) if request.param == "synthetic" else training()


def test_a_page_is_the_same_with_and_without_threads(made, monkeypatch):
    alone = View(made).mimebundle(mount_id="m")
    monkeypatch.setattr(prefetch, "MIN_ACTIVITIES", 0)
    for _ in range(3):
        assert View(made).mimebundle(mount_id="m") == alone


def test_what_fails_ahead_fails_where_it_is_asked_for(made, monkeypatch):
    monkeypatch.setattr(prefetch, "MIN_ACTIVITIES", 0)

    def broken(*_, **__):
        raise ValueError("no table")

    monkeypatch.setitem(breakdowns.BREAKDOWNS, "op", broken)
    with pytest.raises(ValueError, match="no table"):
        View(made).mimebundle()
