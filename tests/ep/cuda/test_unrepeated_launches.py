"""Launches of a kernel in Python that a node must not repeat, and those that look like them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.ep.cuda.test_launch_plans import chain, values
from tests.ep.sessions import model


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


ADDRESSES = {
    "of the input": (lambda x, y: (x.data.ptr, y), "argument 0 .* of input 0"),
    "inside of the input": (lambda x, y: (x.data.ptr + 4, y), "argument 0 .* of input 0"),
    "of the output": (lambda x, y: (x, y.data.ptr), "argument 1 .* of output 0"),
    "of NumPy": (lambda x, y: (np.uint64(x.data.ptr), y), "argument 0 .* of input 0"),
    "in an array": (lambda x, y: (np.array(x.data.ptr, np.int64), y), "argument 0 .* of input 0"),
}


@pytest.mark.parametrize(("addresses", "message"), ADDRESSES.values(), ids=ADDRESSES)
@pytest.mark.parametrize("first", [True, False])
def test_an_integer_that_is_an_address_is_not_repeated(
    ep, fake_cuda, scale, addresses, message, first
):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        y = ctx.out(x.shape)
        if first:
            ctx.repeat_launches()
        ctx.launch(scale, (1,), (1,), (*addresses(x, y), x.size - 1, np.float32(-1)))
        ctx.repeat_launches()

    made = ep.session(chain(), device="cuda:0")
    with pytest.raises(Exception, match=f"TypeError: {message}.*Pass the array or a view of it"):
        made.run(None, {"x": values(2, 3)})


def test_an_integer_is_an_address_if_nothing_is_repeated(ep, fake_cuda, scale):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        y = ctx.out(x.shape)
        arguments = (x.data.ptr, np.uint64(y.data.ptr), x.size, np.float32(-1))
        ctx.launch(scale, (1,), (1,), arguments)

    made = ep.session(chain(), device="cuda:0")
    for run in range(3):
        x = values(2, 3) + run
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)


def test_the_address_of_a_kernels_own_memory_is_not_repeated(ep, fake_cuda, scale):
    calls = []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        between = ctx.xp.empty(x.shape, x.dtype)
        calls.append(between)  # so that the next one lies elsewhere
        ctx.launch(scale, (1,), (1,), (x, between.data.ptr, x.size, np.float32(-2)))
        arguments = (between.data.ptr, ctx.out(x.shape), x.size, np.float32(0.5))
        ctx.launch(scale, (1,), (1,), arguments)
        ctx.repeat_launches()

    made = ep.session(chain(), device="cuda:0")
    for run in range(3):
        x = values(2, 3) + run
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)
    assert len(calls) == 3


LARGE = """
extern "C" __global__ void large(const float* x, float* y, long long n, unsigned long long seed) {
  for (long long i = 0; i < n; i++) y[i] = x[i] * (seed == (1ull << 63) + 1);
}
"""


def test_other_large_integers_are_repeated(ep, fake_cuda):
    kernel, calls = fake_cuda.module.RawKernel(LARGE, "large"), []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        calls.append(1)
        arguments = (x, ctx.out(x.shape), x.size, np.uint64((1 << 63) + 1))
        ctx.launch(kernel, (1,), (1,), arguments)
        ctx.repeat_launches()

    made = ep.session(chain(), device="cuda:0")
    for run in range(3):
        x = values(2, 3) + run
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x)
    assert len(calls) == 1


def test_an_output_that_no_launch_writes_is_not_repeated(ep, fake_cuda, scale):
    """The kernel allows it by mistake."""

    @ep.kernel("TopK", types={"T": "float32"}, host_inputs=[1])
    def top(ctx, x, k):
        n = int(k[0])
        ctx.launch(scale, (1,), (1,), (x, ctx.out((n,)), n, np.float32(1)))
        ctx.out((n,))[...] = ctx.xp.asarray(np.arange(n))
        ctx.repeat_launches()

    x, k = values(6), np.array([3])
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"])
    serialized = model([node], {"x": x, "k": k}, {"y": np.float32, "i": np.int64})
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
