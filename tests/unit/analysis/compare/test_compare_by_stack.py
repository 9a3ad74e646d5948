"""Comparison by Python stack: matched frames, sums of both sides per repeat, removed work."""

from __future__ import annotations

import numpy as np
import pytest

import epprof_nb
from epprof_nb.testing import synthetic_profile
from tests.helpers.changed_stacks import recording
from tests.helpers.tiny import kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks


@pytest.fixture(scope="module")
def changes():
    return epprof_nb.compare(recording(), recording(changed=True)).by_stack()


def _row(frame, name, line=None):
    found = frame[frame["name"] == name]
    found = found if line is None else found[found["line"] == line]
    assert len(found) == 1
    return found.iloc[0]


def test_frames_are_matched_though_lines_and_cells_moved(changes):
    frames = changes[changes["level"] == "frame"]
    status = {
        (row["name"], row["source"] or ""): row["status"]
        for row in frames.astype(object).replace({np.nan: None}).to_dict("records")
    }
    assert status == {
        ("<module>", "train(10)"): "matched",
        ("train", "y = forward(x)"): "matched",
        ("train", "y.backward()"): "matched",
        ("train", "y.item()"): "matched",
        ("train", "log_metrics(y)"): "removed",
        ("forward", "x = linear(x)"): "matched",
        ("forward", "x = self.mlp(x)"): "matched",
        ("forward", "x = dropout(x)"): "added",
        ("mlp", "return gelu(self.up(x), exact)"): "renamed",  # edited
        ("log_metrics", ""): "removed",
    }
    mlp = _row(changes, "mlp")
    assert (mlp["status"], mlp["old_line"], mlp["line"]) == ("renamed", 30, 32)
    cell = _row(changes, "<module>")
    assert (cell["cell"], cell["status"]) == ("In[8]", "matched")


def test_sums_are_means_per_repeat_and_include_the_rows_below(changes):
    forward = _row(changes, "train", 5)
    assert (forward["before_ns"], forward["after_ns"]) == (60_035, 97_052)
    assert forward["delta_ns"] == 97_052 - 60_035
    assert forward["change"] == pytest.approx(97_052 / 60_035 - 1, abs=1e-4)
    assert (forward["launches_before"], forward["launches_after"]) == (2, 3)
    assert np.isnan(_row(changes, "dropout")["change"])
    removed = _row(changes, "reduce")
    assert (removed["after_ns"], removed["change"]) == (0, -1)
    waiting = _row(changes, "train", 8)
    assert (waiting["waits_before"], waiting["waits_after"]) == (1, 1)
    assert (waiting["wait_before_ns"], waiting["wait_after_ns"]) == (1_000, 1_000)
    for parent, below in changes.groupby("parent"):
        for name in ("before_ns", "after_ns"):
            assert abs(below[name].sum() - changes.loc[parent, name]) <= len(below)


def test_frames_of_libraries_are_rows_on_request():
    sides = recording(), recording(changed=True)
    names = set(epprof_nb.compare(*sides).by_stack(library=True)["name"])
    assert {"linear", "backward"} <= names
    assert not {"linear", "backward"} & set(epprof_nb.compare(*sides).by_stack()["name"])


def test_exchanging_the_sides_exchanges_the_columns():
    sides = recording(), recording(changed=True)
    one, other = epprof_nb.compare(*sides).by_stack(), epprof_nb.compare(*sides[::-1]).by_stack()
    swapped = {"added": "removed", "removed": "added"}

    def rows(frame, before, after, status):
        return sorted(zip(frame["name"], frame[before], frame[after], status, strict=True), key=str)

    status = [swapped.get(value, value) for value in other["status"]]
    assert rows(one, "before_ns", "after_ns", one["status"]) == rows(
        other, "after_ns", "before_ns", status
    )


def test_several_recordings_of_a_side_are_averaged():
    old, new = [recording(), recording(repeats=6)], [recording(changed=True)]
    changes = epprof_nb.compare(old, new).by_stack()
    assert (changes["launches_before"].max(), changes["launches_after"].max()) == (4, 4)
    assert abs(_row(changes, "gemm")["before_ns"] - 40_018) <= 1


def test_work_outside_of_the_compared_steps_does_not_count():
    rows, (stack,) = stack_rows("a.py:f:1")
    info = {"repeats": [[0, 100], [100, 200], [200, 300]], "steps": True, "wall_ns": 400}
    work = [
        kernel(10, 20, 1, stack_id=stack, repeat=0, correlation_id=1),
        kernel(110, 130, 1, stack_id=stack, repeat=1, correlation_id=2),
        kernel(210, 240, 1, stack_id=stack, repeat=2, correlation_id=3),
        kernel(310, 390, 1, stack_id=stack, correlation_id=4),
    ]
    side = with_stacks(profile([line(1, 1, 0, 400)], work, info=info), rows)
    changes = epprof_nb.compare(side, side).by_stack()
    assert changes["before_ns"].max() == 20


def test_kernels_of_different_names_are_not_matched():
    def side(name):
        rows, (stack,) = stack_rows("a.py:f:1")
        work = [kernel(10, 20, 1, stack_id=stack, name=name, correlation_id=1)]
        return with_stacks(profile([line(1, 1, 0, 400)], work), rows)

    changes = epprof_nb.compare(side("relu"), side("sort")).by_stack()
    status = dict(zip(changes["name"], changes["status"], strict=True))
    assert (status["relu"], status["sort"], status["f"]) == ("removed", "added", "matched")


def test_profiles_without_stacks_have_one_row_for_all_work():
    prof = synthetic_profile(activities=100)
    changes = epprof_nb.compare(prof, prof).by_stack()
    assert changes.loc[changes["level"] == "none", "name"].tolist() == ["(no stack)"]
    assert (changes["status"] == "matched").all()
    empty = profile()
    assert len(epprof_nb.compare(empty, empty).by_stack()) == 1
