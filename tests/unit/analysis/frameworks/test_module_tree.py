"""The tree of modules against by_module, and against modules walked one activity at a time."""

import pandas as pd
import pytest

from epprof_nb.analysis.base.op_paths import MAX_DEPTH
from epprof_nb.analysis.frameworks.by_module import OUTSIDE
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import kernel, line, op, profile
from tests.helpers.training import framework, training


def tree(made, **options):
    """{path of names: row} of the tree of modules."""
    paths, found = {}, {}
    for number, row in made.by_path(by="module", **options).iterrows():
        above = paths[row["parent"]] if pd.notna(row["parent"]) else ()
        paths[number] = (*above, row["name"])
        assert paths[number] not in found
        assert row["depth"] == len(above)
        found[paths[number]] = row
    return found


def test_forward_and_backward_work_are_side_by_side_below_their_module():
    found = tree(training())
    b = ("session", "net", "net.b")
    assert found[b]["level"] == "module"
    assert (found[b]["device_ns"], found[b]["host_ns"], found[b]["count"]) == (320, 320, 2)
    forward, backward = found[*b, "forward"], found[*b, "backward"]
    assert (forward["device_ns"], backward["device_ns"]) == (80, 240)
    assert (forward["level"], backward["level"]) == ("forward", "backward")
    assert found[*b, "forward", "b"]["level"] == "kernel"
    assert found[*b, "backward", "b again"]["device_ns"] == 80  # it is recomputed
    assert found["session", "net", "forward", "sum"]["device_ns"] == 10


def test_work_outside_of_modules_is_below_the_op_that_launched_it():
    found = tree(training())
    assert found["session", "Adam.step", "update"]["device_ns"] == 14
    assert found["session", "backward", "gradient of the loss"]["device_ns"] == 2
    assert found["session", OUTSIDE, "line 1", "loss"]["device_ns"] == 6
    assert found["session", OUTSIDE, "(no op)", "stray"]["device_ns"] == 11
    assert found["session", OUTSIDE]["device_ns"] == 37


@pytest.mark.parametrize("attribution", ["launch", "capture"])
def test_modules_have_the_times_of_by_module(attribution):
    made = training(3)
    frame, found = made.by_module(attribution=attribution), tree(made, attribution=attribution)
    by_path_of_module = {path[-1]: row for path, row in found.items() if row["level"] == "module"}
    assert by_path_of_module.keys() == {"net", "net.a", "net.b"}
    for name, row in by_path_of_module.items():
        columns = ["device_ns", "host_ns", "kernels"]
        assert row[columns].tolist() == frame.loc[name, columns].tolist()
        assert row["count"] == frame.loc[name, "calls"]


@pytest.mark.parametrize("made", [training(), synthetic_profile(activities=500), profile()])
def test_every_activity_is_counted_once(made):
    frame = made.by_path(by="module")
    assert frame["device_ns"].iloc[0] == made.by_path()["device_ns"].iloc[0]
    below = frame.groupby("parent")[["device_ns", "kernels"]].sum()
    inner = frame.loc[below.index]
    assert below["device_ns"].tolist() == inner["device_ns"].tolist()
    assert below["kernels"].tolist() == inner["kernels"].tolist()
    assert (frame["parent"].dropna() < frame.index[1:]).all()
    assert frame.dtypes.astype(str).tolist() == made.by_path().dtypes.astype(str).tolist()


def test_ops_between_modules_and_kernels_are_rows():
    made = profile(
        [
            framework(1, "net", 0, 90),
            op(2, "mine", 10, 80, 1),
            op(3, "inner", 20, 70, 2),
            framework(4, "net.a", 30, 60, 3),
        ],
        [kernel(20, 25, 3, name="k"), kernel(40, 50, 4, name="k")],
    )
    found = tree(made)
    assert found["session", "net", "forward", "mine", "inner", "k"]["device_ns"] == 5
    assert found["session", "net", "net.a", "forward", "k"]["device_ns"] == 10
    host = {path[-1]: row["host_ns"] for path, row in found.items() if row["level"] != "kernel"}
    assert (host["session"], host["net"], host["net.a"], host["mine"]) == (90, 90, 30, 40)


def test_a_module_inside_a_call_of_itself_is_one_row():
    made = profile(
        [
            framework(1, "net", 0, 90, args={"class": "DistributedDataParallel"}),
            framework(2, "net", 10, 80, 1, args={"class": "Net"}),
            framework(3, "net.a", 20, 70, 2),
            framework(4, "net", 30, 60, 3),
        ],
        [kernel(20, 30, 2, name="k"), kernel(40, 41, 4, name="k")],
    )
    found = tree(made)
    assert found["session", "net"][["count", "device_ns"]].tolist() == [1, 11]
    assert found["session", "net", "forward", "k"]["device_ns"] == 10
    assert found["session", "net", "net.a", "net", "forward", "k"]["device_ns"] == 1


def test_a_module_called_by_two_others_has_a_row_below_each():
    made = profile(
        [
            framework(1, "net", 0, 90),
            framework(2, "net.a", 0, 40, 1), framework(3, "net.shared", 10, 30, 2),
            framework(4, "net.b", 50, 90, 1), framework(5, "net.shared", 60, 80, 4),
        ],
        [kernel(10, 20, 3), kernel(60, 65, 5)],
    )  # fmt: skip
    found = tree(made)
    assert found["session", "net", "net.a", "net.shared"]["device_ns"] == 10
    assert found["session", "net", "net.b", "net.shared"]["device_ns"] == 5


def test_only_the_backward_pass_in_the_profile_has_modules_all_the_same():
    made = profile(
        [
            line(1, 1, 0, 99), framework(2, "backward", 0, 90, 1, "autograd"),
            framework(3, "net", 10, 80, 2, "backward"),
        ],
        [kernel(20, 30, 3, name="k")],
    )  # fmt: skip
    found = tree(made)
    assert found["session", "net"]["level"] == "module"
    assert found["session", "net", "backward", "k"]["device_ns"] == 10


def test_very_deep_models_keep_their_names_and_totals():
    deep = 2 * MAX_DEPTH
    ops = [framework(i + 1, f"m{i}", i, 1000 - i, i or None) for i in range(deep)]
    frame = profile(ops, [kernel(0, 5, deep)]).by_path(by="module")
    assert frame["device_ns"].iloc[0] == 5
    modules = frame[frame["level"] == "module"]
    assert modules["name"].astype(str).tolist() == [f"m{i}" for i in range(MAX_DEPTH)]


def test_an_unknown_kind_of_path_is_an_error():
    with pytest.raises(ValueError, match="by must be 'op' or 'module', not 'layer'"):
        training().by_path(by="layer")
