"""joined, and grouping by arguments: ops, named ranges, arguments, calls and repeats."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epprof_nb
from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.data.op_args import Arguments
from epprof_nb.host import launch, to_device
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, line, nested, op, profile


def layers():
    """A range per layer in which a statement launches, and one kernel without an op."""
    return profile(
        ops=[
            op(1, "In[1]", 0, 1000, op_type="cell"),
            line(2, 1, 0, 900, 1, category="cell"),
            op(3, "layer", 10, 200, 2, args={"index": 0, "kind": "conv"}, category="user"),
            line(4, 3, 20, 190, 3, category="cell"),
            op(5, "layer", 210, 400, 2, args={"index": 1, "scale": 0.5}, category="user"),
            line(6, 3, 220, 390, 5, category="cell"),
            op(7, "range", 230, 240, 6, source="onnxruntime", category="node"),
        ],
        activities=[
            kernel(30, 60, 4, correlation_id=1),
            kernel(230, 280, 6, correlation_id=2),
            kernel(290, 300, 7),
            kernel(400, 410, 2),
            kernel(500, 507),
            activity("synchronization", 0, 900, 1, correlation_id=3),
        ],
        api_calls=[
            call(22, 25, correlation_id=1),
            call(222, 230, correlation_id=2),
            call(0, 901, correlation_id=3, name="cuStreamSynchronize"),
        ],
        sources={"In[1]": "a\nb\nc"},
    )


def values(column):
    return [None if pd.isna(value) else value for value in column]


def test_kernels_of_a_statement_belong_to_the_range_around_it():
    frame = layers().joined()
    assert values(frame["range_name"]) == ["layer", "layer", "layer", None, None, None]
    assert values(frame["range_id"]) == [3, 5, 5, None, None, None]
    assert values(frame["arg_index"]) == [0, 1, 1, None, None, None]
    assert values(frame["op_name"]) == ["line 3", "line 3", "range", "line 1", None, "In[1]"]
    assert values(frame["op_category"])[:4] == ["cell", "cell", "node", "cell"]
    assert values(frame["cell"]) == ["In[1]"] * 4 + [None, "In[1]"]
    assert values(frame["line"]) == [3, 3, 3, 1, None, None]
    assert frame.groupby("arg_index")["duration_ns"].sum().tolist() == [30, 60]


def test_arguments_have_the_dtype_of_their_values():
    frame = layers().joined()
    assert frame["arg_index"].dtype == "Int64"
    assert isinstance(frame["arg_kind"].dtype, pd.CategoricalDtype)
    assert frame["arg_scale"].dtype == np.float64
    assert values(frame["arg_kind"]) == ["conv"] + [None] * 5
    assert values(frame["arg_scale"]) == [None, 0.5, 0.5, None, None, None]
    assert [c for c in layers().joined(args=["scale"]) if c.startswith("arg_")] == ["arg_scale"]


@pytest.mark.parametrize(
    ("given", "dtype", "found"),
    [
        ([True, False], "boolean", [True, False]),
        ([1, 2.5], "float64", [1.0, 2.5]),
        ([1, "a"], "object", [1, "a"]),
        ([1, True], "object", [1, True]),
        ([2**70, 1], "object", [2**70, 1]),
        ([2**3000, 0.5], "object", [2**3000, 0.5]),
        ([[1, 2], {"a": 1}], "category", ["[1, 2]", '{"a": 1}']),
        ([None, 3], "Int64", [None, 3]),
    ],
)
def test_arguments_of_any_kind_become_columns(given, dtype, found):
    made = profile(
        [op(i + 1, "f", 0, 9, args={"x": value}) for i, value in enumerate(given)],
        [kernel(i, i + 1, i + 1) for i in range(len(given))],
    )
    column = made.joined()["arg_x"]
    assert column.dtype == dtype
    assert values(column) == found
    assert len(made.by_op(args=["x"])) == len(given)


def test_the_call_and_the_delay_of_a_launch():
    frame = layers().joined()
    names = ["cuLaunchKernel", "cuLaunchKernel", None, None, None, "cuStreamSynchronize"]
    assert values(frame["api_name"]) == names
    assert values(frame["api_start_ns"]) == [22, 222, None, None, None, 0]
    assert values(frame["api_duration_ns"]) == [3, 8, None, None, None, 901]
    # A wait is not launched.
    assert values(frame["launch_delay_ns"]) == [8, 8, None, None, None, None]


def test_rows_and_columns_of_the_activities_stay():
    made = synthetic_profile(activities=500)
    frame, activities = made.joined(), made.activities
    pd.testing.assert_frame_equal(frame[activities.columns], activities)
    empty = profile().joined()
    assert len(empty) == 0
    assert [c for c in frame if c != "arg_layer"] == empty.columns.tolist()


def test_kernels_of_a_graph_can_be_joined_with_the_op_that_captured_them():
    made = profile(
        [
            op(1, "capture", 0, 10, args={"layer": 2}),
            op(2, "replay", 20, 30, args={"step": 7}),
        ],
        [kernel(25, 28, 2, capture_op_id=1)],
    )
    launched, captured = (made.joined(attribution=a).iloc[0] for a in ("launch", "capture"))
    assert (launched["op_id"], launched["range_name"], launched["arg_step"]) == (2, "replay", 7)
    assert (captured["op_id"], captured["range_name"], captured["arg_layer"]) == (1, "capture", 2)


def test_a_cell_without_marked_lines_is_still_named():
    made = profile([op(1, "In[4]", 0, 9, op_type="cell")], [kernel(1, 2, 1)])
    assert made.joined()["cell"].tolist() == ["In[4]"]


def test_very_many_arguments_are_left_out_with_a_warning():
    args = {f"a{i}": i for i in range(80)}
    made = profile([op(1, "f", 0, 9, args=args)], [kernel(1, 2, 1)])
    with pytest.warns(UserWarning, match=r"80 different arguments.*args=\["):
        frame = made.joined()
    assert "arg_a49" in frame
    assert "arg_a50" not in frame
    assert made.joined(args=["a79"])["arg_a79"].tolist() == [79]


def test_by_op_groups_by_arguments():
    frame = layers().by_op(args=["index"])
    found = frame[frame["name"] == "layer"].set_index("arg_index")
    assert found["device_ns"].to_dict() == {1: 60, 0: 30}
    assert found["count"].tolist() == [1, 1]
    assert frame["self_device_ns"].sum() == 107
    assert values(frame["arg_index"])[-1] is None
    assert frame["name"].iloc[-1] == NO_OP
    pd.testing.assert_frame_equal(layers().by_op(args=[]), layers().by_op())


def test_an_unknown_argument_names_those_that_exist():
    with pytest.raises(
        ValueError, match=r"argument 'layer'; arguments are: 'index', 'kind', 'scale'"
    ):
        layers().by_op(args=["layer"])
    with pytest.raises(ValueError, match="arguments are: none"):
        nested().by_op(args=["x"])


def test_ops_can_be_grouped_by_all_their_arguments():
    ops = layers().ops
    sums = ops.groupby("args")["duration_ns"].sum()
    assert sums.to_dict() == {
        Arguments(index=0, kind="conv"): 190,
        Arguments(index=1, scale=0.5): 190,
    }
    merged = ops.merge(ops[["args"]].dropna().drop_duplicates(), on="args")
    assert len(merged) == 2


def test_arguments_are_dicts_that_stay_as_they_are():
    args = Arguments(layer=3, name="x")
    assert args == {"name": "x", "layer": 3}
    assert hash(args) == hash(Arguments(name="x", layer=3))
    for same in (pickle.loads(pickle.dumps(args)), copy.copy(args), copy.deepcopy(args)):
        assert type(same) is Arguments
        assert same == args
    changes = [
        lambda: args.update(layer=4), lambda: args.pop("layer"), args.clear, args.popitem,
        lambda: args.setdefault("y", 1), lambda: args.__setitem__("layer", 4),
        lambda: args.__delitem__("layer"), lambda: args.__ior__({"layer": 4}),
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(TypeError, match=r"dict\(args\)"):
            change()
    assert args["layer"] == 3


def test_lists_in_arguments_are_not_shared_between_rows():
    made = profile([op(i, "f", 0, 9, args={"shape": [1, 2]}) for i in (1, 2)])
    first, second = made.ops["args"]
    first["shape"].append(3)
    assert second == {"shape": [1, 2]}
    assert made.ops["args"].iloc[0] == {"shape": [1, 2]}


def test_a_real_cell_is_joined_with_its_ranges():
    with epprof_nb.profile() as prof:
        x = to_device(np.ones(8, np.float32))
        for i in range(3):
            with epprof_nb.op("layer", index=i):
                launch(lambda a: None, x, name="k")
    kernels = prof.joined().query("kind == 'kernel'")
    assert kernels["arg_index"].tolist() == [0, 1, 2]
    assert (kernels["launch_delay_ns"] >= 0).all()
    delays = kernels["start_ns"] - kernels["api_start_ns"]
    assert kernels["launch_delay_ns"].tolist() == delays.clip(lower=0).tolist()


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_the_range_is_the_nearest_one_above(data):
    n = data.draw(st.integers(1, 12))
    parents = [data.draw(st.integers(0, i)) for i in range(n)]
    kinds = [data.draw(st.sampled_from(["range", "line", "cell"])) for _ in range(n)]
    ops = [
        op(i + 1, f"op {i + 1}", 0, 9, parent or -1, op_type=kind, args={"me": i + 1})
        for i, (parent, kind) in enumerate(zip(parents, kinds, strict=True))
    ]
    frame = profile(ops, [kernel(0, 1, i + 1) for i in range(n)]).joined()
    for i in range(n):
        at = i + 1
        while at and kinds[at - 1] != "range":
            at = parents[at - 1]
        row = frame.iloc[i]
        assert (0 if pd.isna(row["range_id"]) else row["range_id"]) == at
        if at:
            assert row["arg_me"] == at
