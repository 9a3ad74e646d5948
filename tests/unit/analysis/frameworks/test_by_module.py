"""by_module: sums of each module, and of work outside modules."""

import pandas as pd
import pytest

from epprof_nb.analysis.frameworks.by_module import OUTSIDE
from tests.helpers.tiny import kernel, line, op, profile
from tests.helpers.training import framework, training


def test_modules_have_their_forward_and_backward_time():
    frame = training().by_module()
    net = frame.loc["net"]
    assert (net["type"], net["class"], net["calls"]) == ("module", "Net", 2)
    assert (net["forward_ns"], net["backward_ns"], net["other_ns"]) == (130, 420, 0)
    assert (net["device_ns"], net["self_device_ns"], net["kernels"]) == (550, 110, 14)
    assert (net["forward_host_ns"], net["backward_host_ns"], net["host_ns"]) == (400, 560, 960)
    b = frame.loc["net.b"]
    assert (b["forward_ns"], b["backward_ns"], b["calls"]) == (80, 240, 2)
    assert (b["forward_host_ns"], b["backward_host_ns"]) == (160, 160)


def test_device_and_host_time_are_the_first_times():
    assert training().by_module().columns[3:9].tolist() == [
        "device_ns", "host_ns", "forward_ns", "forward_host_ns", "backward_ns", "backward_host_ns",
    ]  # fmt: skip


def test_work_outside_of_modules_has_rows_of_its_own():
    frame = training().by_module()
    assert frame.loc["backward", ["type", "device_ns", "calls"]].tolist() == ["autograd", 2, 2]
    assert frame.loc["Adam.step", ["type", "other_ns", "kernels"]].tolist() == ["optimizer", 14, 2]
    assert frame.loc["waiting for data", "type"] == "data"
    assert frame.loc["waiting for data", "device_ns"] == 0
    host = ["forward_host_ns", "backward_host_ns", "other_host_ns"]
    assert frame.loc["Adam.step", host].tolist() == [0, 0, frame.loc["Adam.step", "host_ns"]]
    assert frame.loc["waiting for data", host[:2]].tolist() == [0, 0]
    assert (frame.loc[["Adam.step", "waiting for data"], "other_host_ns"] > 0).all()
    assert frame[host].sum(axis=1).equals(frame["host_ns"])
    assert frame.index[-1] == OUTSIDE
    outside = frame.loc[OUTSIDE]  # copies of the batch, losses, and the kernel without an op
    assert (outside["device_ns"], outside["kernels"]) == (37, 5)
    assert pd.isna(outside["calls"])


def test_host_time_of_modules_is_not_that_of_the_backward_pass_too():
    frame = training().by_module()
    # Each pass lasts 300 ns, 280 of them in the module.
    backward = frame.loc["backward"]
    assert (backward["backward_host_ns"], backward["host_ns"]) == (40, 40)


def test_host_time_outside_of_modules_is_what_no_other_row_has():
    frame = training().by_module()
    # Of the 10,000 ns of the cell: two steps with 50 + 200 + 300 + 200 ns in rows of their own.
    assert frame.loc[OUTSIDE, "host_ns"] == 10_000 - 2 * 750
    assert frame.loc[OUTSIDE, ["forward_host_ns", "backward_host_ns"]].isna().all()
    made = profile(
        [
            line(1, 1, 0, 100),
            framework(2, "a", 10, 60, 1),
            op(
                3, "AddBackward0", 60, 90, op_type="autograd_node", category="operator", thread_id=7
            ),
        ]
    )
    assert made.by_module()["host_ns"].to_dict() == {"a": 50, OUTSIDE: 50}


def test_modules_on_threads_of_autograd_are_not_its_host_time():
    made = profile(
        [
            framework(1, "backward", 0, 100, op_type="autograd"),
            framework(2, "a", 10, 60, 1, "backward", thread_id=7),
            framework(3, "b", 40, 80, 1, "backward", thread_id=8),
        ]
    )
    frame = made.by_module()
    assert frame["host_ns"].to_dict() == {"a": 50, "b": 40, "backward": 30, OUTSIDE: None}


def test_a_closure_is_not_host_time_of_the_optimizer():
    made = profile(
        [
            framework(1, "LBFGS.step", 0, 100, op_type="optimizer"),
            op(2, "closure", 5, 90, 1, category="user"),
            framework(3, "net", 10, 40, 2),
            framework(4, "backward", 40, 80, 2, "autograd"),
            framework(5, "net", 45, 75, 4, "backward"),
        ]
    )
    frame = made.by_module()
    assert frame["host_ns"].to_dict() == {
        "net": 60,
        "LBFGS.step": 30,
        "backward": 10,
        OUTSIDE: None,
    }


@pytest.mark.parametrize("attribution", ["launch", "capture"])
def test_own_times_add_up_to_the_device_time(attribution):
    made = training(3)
    frame = made.by_module(attribution=attribution)
    total = made.activities["duration_ns"].sum()
    assert frame["self_device_ns"].sum() == total
    parts = frame["forward_ns"] + frame["backward_ns"] + frame["other_ns"]
    assert parts.equals(frame["device_ns"].rename(None))
    assert frame["share"].tolist() == pytest.approx((frame["device_ns"] / total).tolist())


def test_a_module_inside_a_call_of_itself_counts_its_time_once():
    made = profile(
        [framework(1, "tree", 0, 90), framework(2, "tree", 10, 80, 1)],
        [kernel(20, 30, 2), kernel(40, 45, 1)],
    )
    tree = made.by_module().loc["tree"]
    assert tree[["calls", "device_ns", "self_device_ns", "forward_host_ns"]].tolist() == [
        2, 15, 15, 90,
    ]  # fmt: skip


def test_a_wrapper_and_its_module_are_one_call():
    made = profile(
        [
            framework(1, "net", 0, 90, args={"class": "DistributedDataParallel"}),
            framework(2, "net", 10, 80, 1, args={"class": "Net"}),
        ],
        [kernel(20, 30, 2)],
    )
    net = made.by_module().loc["net"]
    assert (net["calls"], net["class"], net["device_ns"]) == (1, "Net", 10)


def test_a_gradient_inside_of_a_forward_pass_is_backward_time():
    made = profile(
        [
            framework(1, "net", 0, 90),
            framework(2, "backward", 10, 80, 1, "autograd"),
            framework(3, "net.a", 20, 70, 2, "backward"),
        ],
        [kernel(30, 40, 3), kernel(80, 82, 1), kernel(75, 76, 2)],
    )
    net = made.by_module().loc["net"]
    assert net[["forward_ns", "backward_ns", "device_ns"]].tolist() == [2, 11, 13]


def test_an_op_of_the_user_is_no_module():
    user = op(1, "mine", 0, 90, op_type="module", category="user")
    made = profile([user, line(2, 1, 10, 80, 1)], [kernel(20, 30, 2)])
    assert made.by_module().index.tolist() == [OUTSIDE]


def test_a_module_may_have_the_name_of_an_optimizer():
    made = profile(
        [framework(1, "x", 0, 40), framework(2, "x", 50, 90, op_type="optimizer")],
        [kernel(20, 30, 1), kernel(60, 61, 2)],
    )
    frame = made.by_module().loc["x"]
    assert frame["type"].tolist() == ["module", "optimizer"]
    assert frame["device_ns"].tolist() == [10, 1]


def test_joined_names_the_module_and_the_step():
    frame = training().joined()
    row = frame.set_index("name")
    assert row.loc["b again", "module"].tolist() == ["net.b", "net.b"]
    assert row.loc["gradient of a", "step"].tolist() == [0, 1]
    assert row.loc["loss", "module"].isna().all()
    assert row.loc["stray", ["module", "step"]].isna().all()


def compiled_step():
    """A step with a compiled model: a kernel of a module, and one of two, forward and backward."""
    return profile(
        [
            framework(1, "net", 0, 50),
            framework(2, "net.a", 10, 20, 1, "compiled", args={"class": "A"}),
            framework(3, "net.(a + b)", 20, 30, 1, "fused", args={"modules": ["net.a", "net.b"]}),
            framework(4, "backward", 60, 100, op_type="autograd"),
            framework(5, "net", 60, 100, 4, "backward"),
            framework(6, "net.(a + b)", 60, 80, 5, "fused_backward"),
            framework(7, "net.a", 80, 90, 5, "backward"),
            framework(8, "elsewhere.(a + b)", 120, 130, op_type="fused"),
        ],
        [
            kernel(110, 113, 2), kernel(120, 125, 3), kernel(130, 137, 6), kernel(140, 151, 7),
            kernel(160, 161, 8), kernel(170, 172, 5),
        ],
    )  # fmt: skip


def test_a_fused_kernel_counts_once_and_in_the_modules_around_it():
    frame = compiled_step().by_module()
    fused = frame.loc["net.(a + b)"]
    assert fused[["type", "device_ns", "forward_ns", "backward_ns"]].tolist() == ["fused", 12, 5, 7]
    assert fused[["forward_host_ns", "backward_host_ns"]].tolist() == [10, 20]
    a = frame.loc["net.a"]
    assert a[["type", "class", "calls"]].tolist() == ["module", "A", 0]
    assert a[["forward_ns", "backward_ns"]].tolist() == [3, 11]
    net = frame.loc["net"]
    assert net[["calls", "forward_ns", "backward_ns", "self_device_ns"]].tolist() == [1, 8, 20, 2]
    elsewhere = frame.loc["elsewhere.(a + b)"]
    assert elsewhere[["forward_ns", "other_ns"]].tolist() == [1, 0]
    assert frame["self_device_ns"].sum() == 29


def test_modules_of_an_earlier_profile_have_rows_where_they_have_work():
    made = profile(
        [
            framework(1, "net.a", -50, -40, op_type="compiled", status="earlier"),
            framework(2, "net.b", -30, -20, op_type="compiled", status="earlier"),
            framework(3, "net", 0, 50),
        ],
        [kernel(10, 14, 3, capture_op_id=1)],
    )
    assert made.by_module().index.tolist() == ["net", OUTSIDE]
    captured = made.by_module(attribution="capture")
    assert captured["device_ns"].to_dict() == {"net.a": 4, "net": 0, OUTSIDE: 0}
    assert captured["host_ns"].to_dict() == {"net.a": None, "net": 50, OUTSIDE: None}
