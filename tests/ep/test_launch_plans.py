"""Launches of kernels in Python on CUDA devices, and nodes that repeat them without Python."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from onnx import helper

from tests.ep.sessions import model, session

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, long long n, float factor) {
  for (long long i = blockIdx.x; i < n; i += gridDim.x) y[i] = x[i] * factor;
}
"""


@pytest.fixture
def scale(fake_cuda):
    """A kernel in CUDA C++."""
    return fake_cuda.module.RawKernel(SCALE, "scale")


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


def test_each_shape_has_launches_of_its_own(ep, fake_cuda, calls):
    made = ep.session(chain(), device="cuda:0")
    for shape in [(2, 3), (3, 2), (2, 3), (3, 2), (0, 4), (0, 4), (6, 1), (2, 3)]:
        x = values(*shape)
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    # There is nothing to repeat for an empty tensor.
    assert calls == [(2, 3), (3, 2), (0, 4), (0, 4), (6, 1)]


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


def test_memory_of_a_kernels_own_is_not_repeated(ep, fake_cuda, scale):
    calls = []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        calls.append(1)
        between = ctx.xp.empty(x.shape, x.dtype)
        ctx.launch(scale, (1,), (1,), (x, between, x.size, np.float32(-2)))
        ctx.launch(scale, (1,), (1,), (between, ctx.out(x.shape), x.size, np.float32(0.5)))
        ctx.repeat_launches()

    made = ep.session(chain(), device="cuda:0")
    for _ in range(3):
        x = values(2, 3)
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    assert len(calls) == 3


def test_an_output_that_no_launch_writes_is_not_repeated(ep, fake_cuda, scale):
    """The kernel is wrong to allow it."""

    @ep.kernel("TopK", types={"T": "float32"}, host_inputs=[1])
    def top(ctx, x, k):
        n = int(k[0])
        ctx.launch(scale, (1,), (1,), (x, ctx.out((n,)), n, np.float32(1)))
        ctx.out((n,))[...] = ctx.xp.asarray(np.arange(n))
        ctx.repeat_launches()

    x, k = values(6), np.array([3])
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "i"])]
    serialized = model(nodes, {"x": x, "k": k}, {"y": np.float32, "i": np.int64})
    made = ep.session(serialized, device="cuda:0")
    for _ in range(3):
        y, i = made.run(None, {"x": x, "k": k})
        np.testing.assert_array_equal(y, x[:3])
        np.testing.assert_array_equal(i, np.arange(3))


def test_numbers_in_host_memory_belong_to_the_shapes(ep, fake_cuda, scale):
    calls = []

    @ep.kernel("Slice", types={"T": "float32"}, host_inputs=[1, 2, 3, 4])
    def part(ctx, x, starts, ends, axes=None, steps=None):
        calls.append(1)
        (start,), (end,) = starts.tolist(), ends.tolist()
        y = ctx.out((end - start,))
        ctx.launch(scale, (1,), (1,), (x[start:], y, end - start, np.float32(1)))
        ctx.repeat_launches()

    x = values(9)
    feeds = {"x": x, "starts": np.array([0]), "ends": np.array([3])}
    serialized = model([helper.make_node("Slice", list(feeds), ["y"])], feeds, {"y": np.float32})
    made = ep.session(serialized, device="cuda:0")
    for start, end in [(0, 3), (2, 5), (0, 3), (2, 5), (2, 6)]:
        feeds = {"x": x + start, "starts": np.array([start]), "ends": np.array([end])}
        np.testing.assert_array_equal(made.run(None, feeds)[0], x[start:end] + start)
    assert len(calls) == 3


def test_a_launch_is_not_repeated_unless_the_kernel_says_so(ep, fake_cuda, scale):
    factors = iter([1, 2, 3])

    @ep.kernel("Neg", types="float32")
    def counted(ctx, x):
        factor = np.float32(next(factors))
        ctx.launch(scale, (1,), (1,), (x, ctx.out(x.shape), x.size, factor))

    made = ep.session(chain(), device="cuda:0")
    x = values(2, 3)
    for factor in (1, 2, 3):
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * factor)


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


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (lambda x, y: (np.ones(3, np.float32), y, 3, np.float32(1)), "argument 0 .*ndarray"),
        (lambda x, y: (x, y, "3", np.float32(1)), "argument 2 .*str"),
        (lambda x, y: [x, y, 3, np.float32(1)], "a tuple of at most 64 values, not .*list"),
    ],
)
def test_arguments_that_a_kernel_cannot_take(ep, fake_cuda, scale, args, message):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        ctx.launch(scale, (1,), (1,), args(x, ctx.out(x.shape)))

    made = ep.session(chain(), device="cuda:0")
    with pytest.raises(Exception, match=message):
        made.run(None, {"x": values(2, 3)})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ctx, k, a: ctx.launch(k, (0,), (1,), a), "each size is 1 or more"),
        (lambda ctx, k, a: ctx.launch(k, (1, 1, 1, 1), (1,), a), "one to three integers"),
        (lambda ctx, k, a: ctx.launch(k, (1,), "1", a), "one to three integers"),
        (lambda ctx, k, a: ctx.launch(len, (1,), (1,), a), "takes a cupy.RawKernel"),
        (lambda ctx, k, a: ctx.launch(k, (1,), (1,)), "takes a kernel, two tuples"),
        (lambda ctx, k, a: ctx.launch(k, (1,), (1,), a, stream=0), "takes a kernel, two tuples"),
    ],
)
def test_launches_that_cannot_be_made(ep, fake_cuda, scale, call, message):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        call(ctx, scale, (x, ctx.out(x.shape), x.size, np.float32(1)))

    made = ep.session(chain(), device="cuda:0")
    with pytest.raises(Exception, match=message):
        made.run(None, {"x": values(2, 3)})


def test_the_host_device_launches_no_cuda_kernel(ep):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        ctx.repeat_launches()  # has no effect there
        ctx.launch(None, (1,), (1,), ())

    with pytest.raises(Exception, match="runs on the host device"):
        ep.session(chain()).run(None, {"x": values(2, 3)})


def test_a_launch_after_the_kernel_has_returned_is_refused(ep, fake_cuda, scale, calls):
    kept = []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        kept.append(ctx)
        ctx.launch(scale, (1,), (1,), (x, ctx.out(x.shape), x.size, np.float32(-1)))

    ep.session(chain(), device="cuda:0").run(None, {"x": values(2, 3)})
    with pytest.raises(RuntimeError, match="after the kernel had returned"):
        kept[0].launch(scale, (1,), (1,), ())


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
