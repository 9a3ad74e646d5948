"""by_operator: operators of PyTorch, and the nodes of the backward pass that they created."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.frameworks.operator_links import forward_operators
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import first_view_header
from tests.helpers.tiny import kernel, line, op, profile


def operator(op_id, name, start, end, parent, number=None, **more):
    more = {"op_type": "operator", "source": "torch"} | more
    return op(op_id, name, start, end, parent, category="operator", sequence_number=number, **more)


def node(op_id, name, start, end, parent, number, **more):
    return operator(op_id, name, start, end, parent, number, op_type="autograd_node", **more)


def module(op_id, name, start, end, op_type="module"):
    return op(op_id, name, start, end, op_type=op_type, category="framework", source="torch")


def trained():
    """Two linear layers, forward and backward; `aten::t` and `aten::addmm` each create a node."""
    return profile(
        ops=[
            module(1, "net.a", 0, 100),
            operator(2, "aten::linear", 1, 50, 1, 7, input_shapes="[2,4], [4,4]"),
            operator(3, "aten::t", 2, 10, 2, 7),
            operator(4, "aten::addmm", 11, 40, 2, 8),
            operator(5, "aten::expand", 12, 20, 4),
            module(6, "net.b", 100, 200),
            operator(7, "aten::linear", 101, 150, 6, 9, input_shapes="[2,4], [8,4]"),
            operator(8, "aten::addmm", 111, 140, 7, 9),
            module(9, "net.b", 200, 250, "backward"),
            node(10, "AddmmBackward0", 201, 240, 9, 9),
            operator(11, "aten::mm", 202, 230, 10),
            module(12, "net.a", 250, 300, "backward"),
            node(13, "AddmmBackward0", 251, 270, 12, 8),
            node(14, "TBackward0", 271, 290, 12, 7),
            node(15, "torch::autograd::AccumulateGrad", 291, 295, 12, None),
        ],
        activities=[
            kernel(20, 30, 4), kernel(120, 140, 8), kernel(210, 250, 11), kernel(260, 265, 13),
            kernel(275, 276, 14), kernel(291, 293, 15), kernel(400, 407, 1),
        ],
    )  # fmt: skip


def test_device_and_host_time_are_the_first_times():
    assert trained().by_operator().columns[:9].tolist() == [
        "name", "op_type", "count", "device_ns", "host_ns", "self_device_ns", "self_host_ns",
        "backward_ns", "backward_host_ns",
    ]  # fmt: skip


def test_operators_have_the_time_of_the_nodes_that_they_created():
    frame = trained().by_operator().set_index("name")
    columns = ["count", "device_ns", "self_device_ns", "backward_ns", "backward_host_ns"]
    assert frame[columns].T.to_dict("list") == {
        "aten::linear": [2, 30, 0, 40 + 5 + 1, 39 + 19 + 19],
        "aten::addmm": [2, 30, 30, 40 + 5, 39 + 19],
        "AddmmBackward0": [2, 45, 5, 0, 0],
        "aten::mm": [1, 40, 40, 0, 0],
        "TBackward0": [1, 1, 1, 0, 0],
        "torch::autograd::AccumulateGrad": [1, 2, 2, 0, 0],
        "aten::t": [1, 0, 0, 1, 19],
        "aten::expand": [1, 0, 0, 0, 0],
        "(no operator)": [0, 7, 7, None, None],
    }
    assert frame.loc["aten::linear", ["host_ns", "self_host_ns"]].tolist() == [98, 32]
    assert frame["op_type"].isna().tolist() == [False] * 8 + [True]


def test_modules_and_shapes_have_rows_of_their_own():
    frame = trained().by_operator(modules=True)
    linear = frame[frame["name"] == "aten::linear"].set_index("module")
    assert linear["backward_ns"].to_dict() == {"net.a": 6, "net.b": 40}
    assert frame["self_device_ns"].sum() == 85
    frame = trained().by_operator(shapes=True)
    linear = frame[frame["name"] == "aten::linear"].set_index("input_shapes")
    assert linear["backward_ns"].to_dict() == {"[2,4], [4,4]": 6, "[2,4], [8,4]": 40}


def test_a_table_by_shapes_says_how_shapes_are_recorded():
    without = [operator(1, "aten::exp", 0, 10, None, 3), operator(2, "aten::sin", 0, 10, None, 4)]
    frame = profile(ops=without).by_operator(shapes=True)
    assert "--detail shapes" in frame.attrs["note"]
    assert frame["input_shapes"].isna().all()
    assert trained().by_operator(shapes=True).attrs == {}
    assert profile(ops=without).by_operator().attrs == {}


def test_the_summary_and_the_cell_say_where_operators_are():
    hint = "prof.by_operator() has a row for each"
    assert hint in trained().summary()
    notes = first_view_header(ViewModel(trained()))["headline"]["notes"]
    assert [hint in note for note in notes] == [True]
    assert "by_operator" not in profile(ops=[line(1, 1, 0, 10)]).summary()


def test_the_operator_with_the_most_host_time_is_a_finding_without_device_work():
    ops = [
        line(1, 2, 0, 1000),
        operator(2, "aten::linear", 0, 500, 1),
        operator(3, "aten::mm", 10, 490, 2),
        operator(4, "aten::mm", 500, 620, 1),
        operator(5, "aten::relu", 620, 900, 1),
    ]
    prof = profile(ops=ops, info={"wall_ns": 1000})
    (hot,) = prof.insights().to_dict("records")
    assert hot["kind"] == "hot operator"
    assert hot["gain_ns"] == 600
    assert hot["text"] == (
        "`aten::mm` accounts for 67 % of the host time of PyTorch's operators (600 ns in 2 calls)."
    )
    assert prof.evidence(1).index.tolist() == [3, 4]
    even = [operator(n, f"aten::op{n}", 100 * n, 100 * n + 90, None) for n in range(1, 6)]
    assert profile(ops=even, info={"wall_ns": 1000}).insights().empty
    with_device_work = profile(ops=ops, activities=[kernel(20, 30, 3)], info={"wall_ns": 1000})
    assert "hot operator" not in with_device_work.insights()["kind"].tolist()


@pytest.mark.parametrize("name", [None, ""])
def test_an_operator_without_a_name_is_a_finding_too(name):
    ops = [operator(1, name, 0, 900, None), operator(2, "aten::mm", 900, 1000, None)]
    prof = profile(ops=ops, info={"wall_ns": 1000})
    (text,) = prof.insights()["text"]
    assert text.startswith("(no name) accounts for 90 % of the host time of PyTorch's operators")
    assert prof.evidence(1).index.tolist() == [1]
    assert text in prof.summary()


def test_a_number_of_several_threads_is_not_linked():
    made = profile(
        ops=[
            operator(1, "aten::exp", 0, 10, None, 3, thread_id=1),
            operator(2, "aten::sin", 0, 10, None, 3, thread_id=2),
            operator(3, "aten::cos", 20, 30, None, 4, thread_id=2),
            node(4, "CosBackward0", 40, 50, None, 4, thread_id=1),
            node(5, "SinBackward0", 50, 60, None, 3, thread_id=1),
            node(6, "OldBackward0", 60, 70, None, 1, thread_id=1),
        ]
    )
    assert forward_operators(ProfileIndex(made)).tolist() == [-1, -1, -1, 2, -1, -1]


def test_the_time_of_a_nested_backward_pass_counts_once():
    made = profile(
        ops=[
            operator(1, "Checkpoint", 0, 10, None, 3),
            operator(2, "aten::exp", 11, 12, None, 4),
            node(3, "CheckpointBackward", 20, 90, None, 3),
            operator(4, "aten::sin", 21, 30, 3, 5),
            node(5, "SinBackward0", 40, 50, 3, 5),
        ],
        activities=[kernel(41, 45, 5)],
    )
    frame = made.by_operator().set_index("name")
    assert frame["backward_ns"].sum() == 4
    assert frame.loc["Checkpoint", "backward_ns"] == 4


def test_a_profile_without_operators_has_one_row():
    made = profile(ops=[line(1, None, 0, 10, 1)], activities=[kernel(1, 5, 1)])
    frame = made.by_operator()
    assert frame["name"].tolist() == ["(no operator)"]
    assert frame["device_ns"].tolist() == [4]
    assert len(profile().by_operator()) == 0


def test_an_unknown_argument_is_refused_by_the_name_of_the_public_class():
    with pytest.raises(TypeError, match=r"^Profile\.by_operator\(\) got an unexpected keyword"):
        profile().by_operator(shape=True)
