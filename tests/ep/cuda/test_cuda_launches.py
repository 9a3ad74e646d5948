"""Launches by ``ctx.launch``: the arguments of kernels, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from onnx import helper

from tests.ep.sessions import model

X = np.arange(6, dtype=np.float32).reshape(2, 3)
NEG = model([helper.make_node("Neg", ["x"], ["y"], name="n0")], {"x": X}, {"y": np.float32})

TYPES = """
extern "C" __global__ void types(
    const float* x, float* y, bool flag, long long integer, double real, const float* missing,
    unsigned char byte, short small, int word, float single) {
  y[0] = x[0];
  y[1] = flag;
  y[2] = integer;
  y[3] = real;
  y[4] = missing ? 1 : 0;
  y[5] = byte + small + word + single;
}
"""


def test_values_have_the_sizes_that_cupy_gives_them(ep, fake_cuda):
    kernel = fake_cuda.module.RawKernel(TYPES, "types")

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        numbers = (np.uint8(200), np.int16(-3), np.array(5, np.int32), np.float32(0.5))
        args = (x, ctx.out(x.shape), True, -(1 << 40), 0.25, None, *numbers)
        ctx.launch(kernel, np.int64(1), (1, 1), args, shared_mem=np.int64(16))
        ctx.repeat_launches()

    made = ep.session(NEG, device="cuda:0")
    for run in range(3):
        (y,) = made.run(None, {"x": X + run})
        np.testing.assert_array_equal(y.ravel(), [run, 1, -(1 << 40), 0.25, 0, 202.5])


COMPLEX = """
struct parts { double real, imaginary; };
extern "C" __global__ void parts_of(float* y, parts first, parts second) {
  y[0] = first.real;
  y[1] = first.imaginary;
  y[2] = second.real;
  y[3] = second.imaginary;
}
"""


def test_complex_numbers_have_two_doubles(ep, fake_cuda):
    kernel = fake_cuda.module.RawKernel(COMPLEX, "parts_of")

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        ctx.launch(kernel, 1, 1, (ctx.out(x.shape), 1 + 2j, np.complex128(3 - 4j)))
        ctx.repeat_launches()

    made = ep.session(NEG, device="cuda:0")
    for _ in range(3):
        (y,) = made.run(None, {"x": X})
        np.testing.assert_array_equal(y.ravel()[:4], [1, 2, 3, -4])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (lambda x, y: (np.ones(3, np.float32), y, 3, np.float32(1)), "argument 0 .*ndarray"),
        (lambda x, y: (x, y, "3", np.float32(1)), "argument 2 .*str"),
        (lambda x, y: (x, y, np.str_("3"), np.float32(1)), "argument 2 .*str_"),
        (lambda x, y: (x, y, np.array(3, ">i8"), np.float32(1)), "argument 2 .*ndarray"),
        (lambda x, y: [x, y, 3, np.float32(1)], "a tuple of at most 64 values, not .*list"),
        (lambda x, y: (x, y, 3) * 30, "has 90 arguments; ctx.launch takes at most 64"),
    ],
)
def test_arguments_that_a_kernel_cannot_take(ep, fake_cuda, scale, args, message):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        ctx.launch(scale, (1,), (1,), args(x, ctx.out(x.shape)))

    made = ep.session(NEG, device="cuda:0")
    with pytest.raises(Exception, match=message):
        made.run(None, {"x": X})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ctx, k, a: ctx.launch(k, (0,), (1,), a), "sizes are from 1 to 2,147,483,647"),
        (lambda ctx, k, a: ctx.launch(k, (1 << 40,), (1,), a), "sizes are from 1 to"),
        (lambda ctx, k, a: ctx.launch(k, (1 << 80,), (1,), a), "sizes are from 1 to"),
        (lambda ctx, k, a: ctx.launch(k, (1,), (1,), a, shared_mem=1 << 32), "sizes are from 0 to"),
        (lambda ctx, k, a: ctx.launch(k, (1,), (1,), a, shared_mem=-1), "sizes are from 0 to"),
        (lambda ctx, k, a: ctx.launch(k, (1, 1, 1, 1), (1,), a), "one to three integers"),
        (lambda ctx, k, a: ctx.launch(k, (1,), "1", a), "one to three integers"),
        (lambda ctx, k, a: ctx.launch(len, (1,), (1,), a), "takes a cupy.RawKernel"),
        (
            lambda ctx, k, a: ctx.launch(SimpleNamespace(ptr="1"), (1,), (1,), a),
            "address of a CUfunction, not .*SimpleNamespace",
        ),
        (
            lambda ctx, k, a: ctx.launch(k, (1,), (1,), (SimpleNamespace(ptr="1"), *a[1:])),
            "argument 0 .*SimpleNamespace",
        ),
        (lambda ctx, k, a: ctx.launch(k, (1,), (1,)), "takes a kernel, two tuples"),
        (lambda ctx, k, a: ctx.launch(k, (1,), (1,), a, stream=0), "takes a kernel, two tuples"),
    ],
)
def test_launches_that_cannot_be_made(ep, fake_cuda, scale, call, message):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        call(ctx, scale, (x, ctx.out(x.shape), x.size, np.float32(1)))

    made = ep.session(NEG, device="cuda:0")
    with pytest.raises(Exception, match=f"Error: .*{message}"):
        made.run(None, {"x": X})


def test_the_host_device_launches_no_cuda_kernel(ep):
    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        ctx.repeat_launches()  # has no effect there
        ctx.launch(None, (1,), (1,), ())

    with pytest.raises(Exception, match="runs on the host device"):
        ep.session(NEG).run(None, {"x": X})


def test_a_launch_after_the_kernel_has_returned_is_refused(ep, fake_cuda, scale):
    kept = []

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        kept.append(ctx)
        ctx.launch(scale, (1,), (1,), (x, ctx.out(x.shape), x.size, np.float32(-1)))

    ep.session(NEG, device="cuda:0").run(None, {"x": X})
    with pytest.raises(RuntimeError, match="after the kernel had returned"):
        kept[0].launch(scale, (1,), (1,), ())
    with pytest.raises(RuntimeError, match="after the kernel had returned"):
        kept[0].repeat_launches()
