"""The comparison of kernels with the CPU provider."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from epprof_nb.core.errors import KernelError
from tests.ep.sessions import OURS, model
from tests.ort import models


def test_right_kernels_match_and_have_times(ep, ep_device, x):
    table = ep.verify(models.chain(), {"x": x}, device=ep_device).set_index("name")
    assert list(table.index) == ["first", "second", "third"]
    assert (table["provider"] == OURS).all()
    assert table["matches"].all()
    assert (table["max_abs_error"] < 1e-6).all()
    assert (table[["kernel_ns", "cpu_ns"]] > 0).all(axis=None)
    assert table.loc["second", "outputs"] == "float32[2,4]"


def test_an_error_shows_at_the_node_that_makes_it_alone(ep, x):
    @ep.kernel("Relu")
    def wrong(ctx, x):
        np.maximum(x, 0.25, out=ctx.out(x.shape))

    table = ep.verify(models.chain(), {"x": x}).set_index("name")
    assert table["matches"].to_dict() == {"first": False, "second": True, "third": True}
    assert table.loc["first", "max_abs_error"] == pytest.approx(0.25)


def test_a_failing_kernel_is_a_row_with_its_message(ep, ep_device, x):
    @ep.kernel("Sigmoid")
    def broken(ctx, x):
        raise ValueError("not today")

    table = ep.verify(models.chain(), {"x": x}, device=ep_device).set_index("name")
    assert table.loc["third", "note"].startswith("The kernel of node 'third'")
    assert table.loc["third", "note"].endswith("not today")
    assert table["matches"].isna().to_dict() == {"first": False, "second": False, "third": True}


def test_a_wrong_shape_does_not_match(ep):
    node = helper.make_node("Abs", ["x"], ["y"], name="node")
    feeds = {"x": np.ones((2, 3), np.float32)}

    @ep.kernel("Abs")
    def flat(ctx, x):
        ctx.out((3, 2)).fill(1)

    table = ep.verify(model([node], feeds, {"y": np.float32}), feeds)
    assert not table.loc[0, "matches"]
    assert "the shapes differ: (3, 2) and (2, 3) on the CPU" in table.loc[0, "note"]


def test_a_wrong_dimension_that_has_a_name_passes_a_run_but_not_the_comparison(ep):
    """Names of dimensions are hints: ONNX Runtime runs a model that gives one to two sizes."""
    double = helper.make_node("Concat", ["x", "x"], ["y"], axis=0)
    soft = helper.make_node("Softplus", ["x"], ["y"], name="node")
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["B", 4]) for n in "xy"]
    feeds = {"x": np.ones((3, 4), np.float32)}
    models_ = [
        helper.make_model(
            helper.make_graph([node], "g", values[:1], values[1:]),
            opset_imports=[helper.make_opsetid("", 21)], ir_version=10,
        ).SerializeToString()
        for node in (double, soft)
    ]  # fmt: skip
    on_cpu = onnxruntime.InferenceSession(models_[0], providers=["CPUExecutionProvider"])
    assert on_cpu.run(None, feeds)[0].shape == (6, 4)

    @ep.kernel("Softplus")
    def two_rows(ctx, x):
        ctx.out((2, 4)).fill(0)

    assert ep.session(models_[1]).run(None, feeds)[0].shape == (2, 4)
    note = ep.verify(models_[1], feeds).loc[0, "note"]
    assert note == "the shapes differ: (2, 4) and (3, 4) on the CPU"


def test_only_the_selected_nodes_are_rows(ep, x):
    table = ep.verify(models.chain(), {"x": x}, only=["Relu"])
    assert table[["name", "provider", "note"]].to_numpy().tolist() == [["first", OURS, ""]]
    table = ep.verify(models.chain(), {"x": x}, nodes=["second"])
    assert table["name"].tolist() == ["second"]
    table = ep.verify(models.chain(), {"x": x}, only=["Relu"], nodes=["second"])
    assert table.empty
    assert list(table) == list(ep.verify(models.chain(), {"x": x}))


def test_nodes_with_subgraphs_say_why_they_are_not_compared(ep, x):
    table = ep.verify(models.looping(), {"x": x, "times": np.array(2)}).set_index("op_type")
    assert "subgraphs" in table.loc["Loop", "note"]


def test_an_operator_without_schema_runs_but_has_nothing_to_compare_with(ep, x):
    @ep.kernel("Twice", domain="com.example")
    def twice(ctx, x):
        np.multiply(x, ctx.attrs["factor"], out=ctx.out(x.shape))

    nodes = [
        helper.make_node("Twice", ["x"], ["t"], name="mine", domain="com.example", factor=2),
        helper.make_node("Relu", ["t"], ["y"], name="relu"),
    ]
    serialized = model(nodes, {"x": x}, {"y": np.float32}, domains=["com.example"])
    table = ep.verify(serialized, {"x": x}).set_index("name")
    assert table.loc["mine", "note"] == "has no implementation but the kernel"
    assert np.isnan(table.loc["mine", "max_abs_error"])
    assert table.loc["relu", "matches"]


def test_a_file_is_verified_and_a_missing_one_is_refused(ep, x, tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(models.chain())
    assert ep.verify(file, {"x": x})["matches"].all()
    with pytest.raises(KernelError, match="cannot be loaded"):
        ep.verify(tmp_path / "other.onnx", {"x": x})


def test_a_kernel_that_repeats_a_part_of_its_work_does_not_match(ep, scale):
    @ep.kernel("Abs", types="float32")
    def in_part(ctx, x):
        y = ctx.out(x.shape)
        ctx.launch(scale, (1,), (1,), (x, y, x.size, np.float32(-1)))
        ctx.xp.abs(y, out=y)  # which is not repeated
        ctx.repeat_launches()

    feeds = {"x": np.array([[1, 2, 3], [4, 5, 0]], np.float32)}
    node = helper.make_node("Abs", ["x"], ["y"], name="abs")
    table = ep.verify(model([node], feeds, {"y": np.float32}), feeds, device="cuda:0")
    assert not table.loc[0, "matches"]
    assert "wrong in a later one" in table.loc[0, "note"]


def test_the_kernels_of_the_package_are_right_in_later_runs(ep, fake_cuda, x):
    table = ep.verify(models.chain(), {"x": x}, device="cuda:0")
    assert table["matches"].all()


def test_at_least_one_run_is_timed(ep, x):
    with pytest.raises(KernelError, match="repeats=0"):
        ep.verify(models.chain(), {"x": x}, repeats=0)
