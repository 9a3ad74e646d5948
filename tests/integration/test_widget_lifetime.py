"""Objects kept alive by a live view, and their release when it is closed."""

from __future__ import annotations

import gc
import weakref
from itertools import count

import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.widget import widget
from epprof_nb.views.widget.open_views import MAX_OPEN


@pytest.fixture(autouse=True)
def _unpublished(shell, monkeypatch):
    monkeypatch.setattr(shell.display_pub, "publish", lambda *_, **__: None)
    yield
    for view in widget._registry:
        view.close()


def test_a_closed_view_frees_its_profile_though_its_name_stays(shell):
    profile = synthetic_profile(activities=200)
    freed = weakref.ref(profile)
    live = profile.timeline().widget()
    assert len(live.selection) == 200
    del profile
    gc.collect()
    assert freed() is not None
    live.close()
    shell.run_cell("None")  # callbacks for the next cell have run
    gc.collect()
    assert freed() is None
    assert len(live.selection) == 0


def test_closing_one_view_leaves_the_others():
    profile = synthetic_profile(activities=200)
    one, two = profile.timeline().widget(), profile.timeline().widget()
    one.close()
    one.close()
    assert list(widget._registry) == [two]
    assert len(two.selection) == 200


def test_the_oldest_of_many_views_is_closed():
    profile = synthetic_profile(activities=200)
    views = [profile.timeline().widget() for _ in range(MAX_OPEN + 2)]
    assert list(widget._registry) == views[2:]
    assert len(views[0].selection) == 0
    assert len(views[2].selection) == 200


@pytest.fixture
def executes(shell):
    """Run code in a cell, as requested by the front end of a notebook."""
    requests = count()

    def run(cell, code="None", *, deleted=()):
        parent = {"msg_id": str(next(requests)), "metadata": {"deletedCells": list(deleted)}}
        if cell is not None:
            parent["metadata"]["cellId"] = cell
        shell.get_parent = lambda: parent
        shell.run_cell(code).raise_error()

    yield run
    del shell.get_parent


def test_a_cell_that_runs_again_closes_its_views_and_no_others(shell, executes):
    profile = synthetic_profile(activities=200)
    freed = weakref.ref(profile)
    shell.user_ns["show"] = profile.timeline().widget
    executes("one", "a, b = show(), show()")
    assert len(shell.user_ns["a"].selection) == 200  # two of one execution
    shell.user_ns["show"] = synthetic_profile(activities=100).timeline().widget
    del profile
    executes("two", "c = show()")
    assert len(list(widget._registry)) == 3
    executes("one")
    assert list(widget._registry) == [shell.user_ns["c"]]
    gc.collect()
    assert freed() is None


def test_a_deleted_cells_view_closes_with_the_next_execution(shell, executes):
    shell.user_ns["show"] = synthetic_profile(activities=100).timeline().widget
    executes("one", "a = show()")
    executes("two", "b = show()")
    executes("three", deleted=["zero", "one"])
    assert list(widget._registry) == [shell.user_ns["b"]]


def test_where_cells_have_no_ids_views_stay(shell, executes):
    shell.user_ns["show"] = synthetic_profile(activities=100).timeline().widget
    executes(None, "a = show()")
    executes(None, "b = show()")
    assert list(widget._registry) == [shell.user_ns["a"], shell.user_ns["b"]]


def test_a_view_whose_output_was_cleared_closes():
    live = synthetic_profile(activities=100).timeline().widget()
    live._on_message(live, {"type": "closed"}, [])
    assert list(widget._registry) == []
    assert len(live.selection) == 0


@pytest.fixture
def displayed(shell, monkeypatch):
    """The MIME bundles that are displayed, without updates."""
    bundles = []

    def publish(data, *_, update=False, **__):
        if not update:
            bundles.append(data)

    monkeypatch.setattr(shell.display_pub, "publish", publish)
    return bundles


WIDGET = "application/vnd.jupyter.widget-view+json"


def test_a_view_at_the_end_of_its_own_cell_is_shown_once(shell, displayed):
    shell.user_ns["show"] = synthetic_profile(activities=100).timeline().widget
    shell.run_cell("w = show()\nw").raise_error()
    assert [WIDGET in data for data in displayed] == [True, False]


def test_a_view_shown_in_a_later_cell_goes_there(shell, executes, displayed):
    shell.user_ns["show"] = synthetic_profile(activities=100).timeline().widget
    executes("one", "w = show()")
    shell.execution_count += 1
    executes("two", "w")
    live = shell.user_ns["w"]
    assert [WIDGET in data for data in displayed] == [True, False, True, False]
    first, second = displayed[1]["text/html"], displayed[3]["text/html"]
    assert live.place in second
    assert live.place not in first
    executes("one")  # it is not there any more
    assert list(widget._registry) == [live]
    executes("two")
    assert list(widget._registry) == []
    displayed.clear()
    shell.execution_count += 1
    executes("three", "w")
    assert "This live view is closed" in displayed[0]["text/plain"]
