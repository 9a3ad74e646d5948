"""Costs of recording in the user's cache, and in new profiles."""

import json

import pytest

from epprof_nb.files.machine_values import values_path
from epprof_nb.files.recording_costs import load_costs, save_costs
from epprof_nb.profiles.recording_costs import add_recording_costs
from epprof_nb.util.machine import machine_id


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_costs_of_other_kinds_stay():
    assert load_costs() == {}
    save_costs({"op": 300.0, "launch": 700.0})
    save_costs({"op": 310.0, "module": 2_000.0})
    assert load_costs() == {"op": 310.0, "launch": 700.0, "module": 2_000.0}


def test_profiles_get_them_where_that_is_wanted():
    info = {}
    add_recording_costs(info)
    assert info == {}
    save_costs({"op": 300.0})
    add_recording_costs(info)
    assert info == {"recording_costs": {"op": 300.0}}


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"op": 3}', json.dumps({machine_id(): [1]}), json.dumps({machine_id(): {"x": 1}})],
)
def test_a_damaged_file_has_none_and_is_replaced(content):
    path = values_path("recording_costs")
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert load_costs() == {}
    save_costs({"op": 300.0})
    assert load_costs() == {"op": 300.0}


@pytest.mark.parametrize("cost", [-1, 1e9, float("nan"), "300", None, [300]])
def test_impossible_costs_are_none(cost):
    save_costs({"op": 300.0, "launch": cost})
    assert load_costs() == {"op": 300.0}
