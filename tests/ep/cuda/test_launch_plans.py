"""Launches of kernels in Python on CUDA devices, and nodes that repeat them without Python."""

from __future__ import annotations

import gc
import itertools
import re
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import epprof_nb
from tests.ep.fake_cuda.kernels import SCALE
from tests.ep.sessions import model, on_cpu, session
from tests.ort.rows import nodes
from tests.paths import ROOT


@pytest.fixture
def calls(ep, scale):
    """Define a kernel of Neg that repeats its launch; the shapes of the calls of Python."""
    made = []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        made.append(x.shape)
        y = ctx.out(x.shape)
        if x.size:
            ctx.launch(scale, (x.size,), (1,), (x, y, x.size, np.float32(-1)))
        ctx.repeat_launches()

    return made


def chain(nodes=1, rank=2):
    names = ["x", *(f"t{i}" for i in range(1, nodes)), "y"]
    made = [
        helper.make_node("Neg", [a], [b], name=f"n{i}")
        for i, (a, b) in enumerate(itertools.pairwise(names))
    ]
    return model(made, {"x": np.ones((1,) * rank, np.float32)}, {"y": np.float32})


def any_rank(node):
    """A model of one node whose inputs and output have no known rank."""
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
        for names in (node.input, node.output)
    )
    made = helper.make_model(
        helper.make_graph([node], "graph", inputs, outputs),
        opset_imports=[helper.make_opsetid("", 18)],
    )
    made.ir_version = 9
    return made.SerializeToString()


def values(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_a_node_repeats_its_launch_without_python(ep, fake_cuda, calls):
    made = ep.session(chain(3), device="cuda:0")
    for run in range(5):
        x = values(2, 3) + run
        launches = fake_cuda.calls("cuLaunchKernel")
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
        assert fake_cuda.calls("cuLaunchKernel") - launches == 3
    assert calls == [(2, 3)] * 3  # one for each node


def test_the_example_of_the_documentation_repeats_its_launch(ep, fake_cuda, monkeypatch, tmp_path):
    page = (ROOT / "docs/kernels.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(import cupy\n.*?)```", page, re.DOTALL)[1]
    monkeypatch.setitem(sys.modules, "cupy", fake_cuda.module)
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").write_bytes(chain())
    names = {}
    exec(block, names)
    x = values(20, 30)
    for _ in range(3):
        launches = fake_cuda.calls("cuLaunchKernel")
        np.testing.assert_array_equal(names["session"].run(None, {"x": x})[0], -x)
        assert fake_cuda.calls("cuLaunchKernel") == launches + 1


def test_nothing_is_repeated_on_the_host_device(ep):
    calls = []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        calls.append(x.shape)
        np.negative(x, out=ctx.out(x.shape))
        ctx.repeat_launches()

    made = ep.session(chain())
    for run in range(3):
        x = values(2, 3) + run
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    assert calls == [(2, 3)] * 3


def test_each_shape_has_launches_of_its_own(ep, fake_cuda, calls):
    made = ep.session(chain(), device="cuda:0")
    for shape in [(2, 3), (3, 2), (2, 3), (3, 2), (0, 4), (0, 4), (6, 1), (2, 3)]:
        x = values(*shape)
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    # There is nothing to repeat for an empty tensor.
    assert calls == [(2, 3), (3, 2), (0, 4), (0, 4), (6, 1)]


def test_inputs_of_other_ranks_have_launches_of_their_own(ep, fake_cuda, scale):
    calls = []

    @ep.kernel("Add", types="float32")
    def negative(ctx, x, z):
        calls.append((x.shape, z.shape))
        ctx.launch(scale, (x.size,), (1,), (x, ctx.out(x.shape), x.size, np.float32(-1)))
        ctx.repeat_launches()

    serialized = any_rank(helper.make_node("Add", ["x", "z"], ["y"], name="add"))
    made = ep.session(serialized, device="cuda:0")
    shapes = [((2,), (1, 4)), ((2, 1), (4,))]  # the same numbers one after the other
    for of_x, of_z in shapes * 2:
        x = values(*of_x)
        np.testing.assert_array_equal(made.run(None, {"x": x, "z": values(*of_z)})[0], -x)
    assert calls == shapes


def test_the_shapes_that_were_used_last_are_kept(ep, fake_cuda, calls):
    made = ep.session(chain(), device="cuda:0")
    for n in [*range(1, 9), 1, 9, 1, 2]:
        x = values(n, 1)
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    assert [n for n, _ in calls] == [*range(1, 9), 9, 2]


def test_a_kernel_that_is_defined_again_is_called(ep, fake_cuda, scale, calls):
    made = ep.session(chain(), device="cuda:0")
    x = values(2, 3)
    for _ in range(2):
        made.run(None, {"x": x})

    @ep.kernel("Neg", types="float32")
    def double(ctx, x):
        ctx.launch(scale, (1,), (1,), (x, ctx.out(x.shape), x.size, np.float32(2)))

    for _ in range(2):
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * 2)
    assert len(calls) == 1


def test_a_kernel_that_is_defined_again_while_it_runs(ep, fake_cuda, scale):
    from epprof_nb.ep.kernel import REGISTRY

    def double(ctx, x):
        ctx.launch(scale, (1,), (1,), (x, ctx.out(x.shape), x.size, np.float32(2)))

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        ctx.launch(scale, (1,), (1,), (x, ctx.out(x.shape), x.size, np.float32(-1)))
        ctx.repeat_launches()
        ep.kernel("Neg", types="float32")(double)

    made = ep.session(chain(), device="cuda:0")
    x = values(2, 3)
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    assert REGISTRY._defined[-1].function is double
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * 2)


def test_views_of_inputs_and_outputs_are_found_again(ep, fake_cuda, scale):
    calls = []

    @ep.kernel("Add", types="float32")
    def add(ctx, a, b):
        calls.append(1)
        y = ctx.out(a.shape)
        for row, source in enumerate((b, a)):
            ctx.launch(
                scale, (1,), (1,), (source[1 - row], y[row], a.shape[1], np.float32(row + 1))
            )
        ctx.repeat_launches()

    node = helper.make_node("Add", ["a", "b"], ["y"])
    feeds = {"a": values(2, 3), "b": values(2, 3)}
    made = ep.session(model([node], feeds, {"y": np.float32}), device="cuda:0")
    for run in range(3):
        feeds = {"a": values(2, 3) + run, "b": values(2, 3) * run}
        (y,) = made.run(None, feeds)
        np.testing.assert_array_equal(y, [feeds["b"][1], feeds["a"][0] * 2])
    assert len(calls) == 1


def test_inputs_that_share_memory_once_are_told_apart(ep, fake_cuda, scale, on_device):
    @ep.kernel("Add", types="float32")
    def add(ctx, a, b):
        y = ctx.out(a.shape)
        ctx.launch(scale, (1,), (1,), (a[0], y[0], a.shape[1], np.float32(1)))
        ctx.launch(scale, (1,), (1,), (b[1], y[1], a.shape[1], np.float32(1)))
        ctx.repeat_launches()

    node = helper.make_node("Add", ["a", "b"], ["y"])
    x, z = values(2, 3), values(2, 3) + 5
    made = ep.session(model([node], {"a": x, "b": x}, {"y": np.float32}), device="cuda:0")
    both, other = on_device(x), on_device(z)
    for a, b in [(both, both), (both, other), (other, both), (both, both)]:
        (y,) = made.run_with_ort_values(None, {"a": a, "b": b})
        np.testing.assert_array_equal(y.numpy(), [a.numpy()[0], b.numpy()[1]])


@pytest.fixture
def on_device(ep, fake_cuda):
    import onnxruntime

    ep.provider("cuda:0")
    return lambda value: onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", 0)


def test_threads_share_the_launches_of_a_session(ep, fake_cuda, calls):
    fake_cuda.set_delay(200)
    made = ep.session(chain(3), device="cuda:0")
    shapes = [(1 + i % 4, 2 + i % 3) for i in range(96)]
    start = threading.Barrier(32)

    def run(number):
        if number < 32:
            start.wait()
        x = values(*shapes[number]) + number
        return np.array_equal(made.run(None, {"x": x})[0], -x)

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(run, range(96)))


def test_a_failed_launch_names_its_node_and_kernel(ep, fake_cuda, calls):
    made = ep.session(chain(2), device="cuda:0")
    x = values(2, 3)
    made.run(None, {"x": x})
    fake_cuda.fail("cuLaunchKernel", 1, skip=1)
    with pytest.raises(
        Exception,
        match=r"node 'n1' \(Neg\) failed.*launch of scale failed.*"
        "CUDA_ERROR_INVALID_VALUE",
    ):
        made.run(None, {"x": x})
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], x)
    assert len(calls) == 2


def test_a_launch_that_fails_in_python_says_why(ep, fake_cuda, calls):
    made = ep.session(chain(), device="cuda:0")
    fake_cuda.fail("cuLaunchKernel", 1)
    with pytest.raises(Exception, match=r"node 'n0' \(Neg\).*launch of scale failed"):
        made.run(None, {"x": values(2, 3)})
    for _ in range(2):
        made.run(None, {"x": values(2, 3)})
    assert len(calls) == 2  # the launch that failed is not repeated


def test_memory_that_is_exhausted_in_a_repeated_launch(ep, fake_cuda, calls, on_device):
    made = ep.session(chain(), device="cuda:0")
    x, kept = on_device(values(1000, 1000)), []

    def run(count):
        for _ in range(count):
            binding = made.io_binding()
            binding.bind_ortvalue_input("x", x)
            binding.bind_output("y", "cuda", 0)
            made.run_with_iobinding(binding)
            kept.append(binding.get_outputs())  # whose memory no other run gets

    run(1)
    with fake_cuda.memory_of(fake_cuda.used() + 1), pytest.raises(Exception, match="memory"):
        run(100)
    run(1)
    assert len(calls) == 1


def test_kernels_stay_loaded_as_long_as_a_node_repeats_them(ep, fake_cuda):
    loaded = []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        kernel = ctx.xp.RawKernel(SCALE, "scale")
        loaded.append(weakref.ref(kernel.kernel))
        ctx.launch(kernel, (1,), (1,), (x, ctx.out(x.shape), x.size, np.float32(-1)))
        ctx.repeat_launches()

    made = ep.session(chain(), device="cuda:0")
    x = values(2, 3)
    for _ in range(3):
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    assert len(loaded) == 1
    assert loaded[0]() is not None
    del made
    gc.collect()
    assert loaded[0]() is None


def test_a_graph_captures_what_a_node_would_repeat(ep, fake_cuda, calls):
    made = ep.session(chain(2), device="cuda:0", enable_cuda_graph=True)
    for run in range(4):
        x = values(2, 3) + run
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x)
    assert fake_cuda.calls("cuGraphLaunch") >= 3


def test_two_devices_have_launches_of_their_own(ep, fake_cuda, calls):
    both = [ep.session(chain(), device=f"cuda:{i}") for i in (0, 1)]
    for run in range(3):
        for made in both:
            x = values(2, 3) + run
            np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    assert len(calls) == 2


def test_the_streams_of_two_sessions_stay_apart(ep, fake_cuda, calls):
    fake_cuda.set_delay(500)
    made = [session(chain(2), ep.provider("cuda:0")) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        runs = [(m, values(4, 5) + i) for i in range(10) for m in made]
        results = pool.map(lambda run: run[0].run(None, {"x": run[1]})[0], runs)
        for (_, x), y in zip(runs, results, strict=True):
            np.testing.assert_array_equal(y, x)


def test_bodies_of_loops_repeat_their_launches(ep, fake_cuda, calls):
    """The nodes of a body run many times in one run, with shapes that change."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Neg", ["state"], ["negative"], name="negate"),
            helper.make_node("Concat", ["negative", "state"], ["next"], axis=0),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, None),
        ],
    )
    node = helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)
    x, count = values(2, 2), np.array(3)
    serialized = model([node], {"x": x, "count": count}, {"y": np.float32})
    made, right = ep.session(serialized, device="cuda:0"), on_cpu(serialized)
    for run in range(3):
        feeds = {"x": x + run, "count": count}
        np.testing.assert_array_equal(made.run(None, feeds)[0], right.run(None, feeds)[0])
    assert calls == [(2, 2), (4, 2), (8, 2)]


def test_a_session_inside_a_kernel_has_its_own_launches(ep, fake_cuda, scale, calls):
    inner = ep.session(chain(), device="cuda:0")

    @ep.kernel("Abs", types="float32")
    def outer(ctx, x):
        y = ctx.out(x.shape)
        inner.run(None, {"x": np.ones((1, 2), np.float32)})
        ctx.launch(scale, (1,), (1,), (x, y, x.size, np.float32(3)))
        ctx.repeat_launches()

    node = helper.make_node("Abs", ["x"], ["y"])
    made = ep.session(model([node], {"x": values(2, 2)}, {"y": np.float32}), device="cuda:0")
    for run in range(3):
        x = values(2, 2) + run
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * np.float32(3))
    assert calls == [(1, 2)]


def test_a_profile_has_the_nodes_that_repeat_their_launches(ep, fake_cuda, calls, installed):
    made = session(chain(3), ep.provider("cuda:0"))
    made.run(None, {"x": values(2, 3)})
    with epprof_nb.profile() as prof:
        for _ in range(4):
            made.run(None, {"x": values(2, 3)})
    assert len(calls) == 3
    names = nodes(prof)["name"].astype(str)
    assert names.value_counts().to_dict() == {"n0": 4, "n1": 4, "n2": 4}
