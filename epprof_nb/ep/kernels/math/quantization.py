"""Quantization, and products of quantized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.checks import expect_shape
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.without_warnings import quiet
from epprof_nb.ep.products import products
from epprof_nb.ep.small_floats import cast as small_cast
from epprof_nb.ep.small_floats import is_small


def spread(xp: ArrayModule, parameter: Array, x: Array, axis: int, block: int = 0) -> Array:
    """Return scales or zero points in a shape that broadcasts with a tensor.

    Parameters
    ----------
    xp
        Array module.
    parameter
        A scalar, one value per element of an axis, or one per block of the axis.
    x
        The tensor.
    axis
        Axis along which the parameters differ.
    block
        Number of elements of the axis that share a value; 0 without blocks.
    """
    if parameter.ndim == 0 or parameter.size == 1:
        return parameter.reshape(())
    axis = nonnegative(axis, x.ndim)
    if block:
        shape = (*x.shape[:axis], -(-x.shape[axis] // block), *x.shape[axis + 1 :])
        expect_shape("the scale or zero point", parameter, shape)
        return xp.repeat(parameter, block, axis=axis)[tuple(slice(0, n) for n in x.shape)]
    expect_shape("the scale or zero point", parameter, (x.shape[axis],))
    return parameter.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


def quantize(xp: ArrayModule, x: Array, zero_point: Array | int, dtype: Any) -> Array:  # noqa: ANN401
    """Round scaled values to integers and limit them to their range."""
    limits = np.iinfo(dtype)
    return xp.clip(xp.rint(x) + zero_point, limits.min, limits.max).astype(dtype)


def requantize(
    xp: ArrayModule,
    total: Array,
    factor: Array,
    zero_point: Array,
    dtype: Any,  # noqa: ANN401
) -> Array:
    """Quantize integers times a factor, with the rounding of ONNX Runtime's CPU provider."""
    scaled = total.astype(np.float32) * at_least_float32(factor)
    return quantize(xp, scaled, zero_point.astype(np.float32), dtype)


def _expect_zero_point(scale: Array, zero_point: Array | None) -> None:
    if zero_point is not None and not zero_point.size == scale.size == 1:
        expect_shape("the zero point", zero_point, scale.shape)


@builtin("QuantizeLinear", since=10, moves=True)
@quiet
def quantize_linear(ctx: Context, x: Array, scale: Array, zero_point: Array | None = None) -> None:
    """Integers for the multiples of a scale."""
    xp, attrs = ctx.xp, ctx.attrs
    _expect_zero_point(scale, zero_point)
    y = ctx.out(x.shape)
    axis, block = attrs.get("axis", 1), attrs.get("block_size", 0)
    wide = x.astype(np.float32) / spread(xp, scale, x, axis, block).astype(np.float32)
    if is_small(y.dtype):  # whose zero point is 0
        y[...] = small_cast(xp, wide, y.dtype, saturate=bool(attrs.get("saturate", 1)))
        return
    zero = 0 if zero_point is None else spread(xp, zero_point, x, axis, block).astype(np.float32)
    y[...] = quantize(xp, wide, zero, y.dtype)


@builtin("DequantizeLinear", since=10, moves=True)
def dequantize_linear(
    ctx: Context, x: Array, scale: Array, zero_point: Array | None = None
) -> None:
    """The multiples of a scale that integers stand for."""
    xp, attrs = ctx.xp, ctx.attrs
    _expect_zero_point(scale, zero_point)
    axis, block = attrs.get("axis", 1), attrs.get("block_size", 0)
    y = ctx.out(x.shape)
    wide = x.astype(np.float32)
    if zero_point is not None:
        wide -= spread(xp, zero_point, x, axis, block).astype(np.float32)
    y[...] = wide * spread(xp, scale, x, axis, block).astype(np.float32)


@builtin("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(ctx: Context, x: Array) -> None:
    """Unsigned bytes, with the scale and zero point that fit the tensor's range."""
    xp = ctx.xp
    y, scale, zero_point = ctx.out(x.shape, index=0), ctx.out((), index=1), ctx.out((), index=2)
    low = xp.minimum(x.min(), 0) if x.size else x.dtype.type(0)
    high = xp.maximum(x.max(), 0) if x.size else x.dtype.type(0)
    step = (high - low) / x.dtype.type(255)
    step = xp.where(step == 0, x.dtype.type(1), step)
    zero = xp.clip(xp.rint(-low / step), 0, 255)
    scale[...] = step
    zero_point[...] = zero
    y[...] = quantize(xp, x / step, zero, y.dtype)


def shifted(x: Array, zero_point: Array | None, *, axis: int | None = None) -> Array:
    """Return integers less their zero point, as int32; one zero point per element of an axis."""
    wide = x.astype(np.int32)
    if zero_point is not None:
        zero = zero_point.astype(np.int32)
        if zero.ndim == 1 and zero.size > 1 and axis is not None:
            zero = zero.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
        elif zero.size == 1:
            if zero.ndim > 1:
                raise ValueError(f"a zero point has {zero.ndim} dimensions, not 0 or 1")
            zero = zero.reshape(())
        wide -= zero
    return wide


def exact_product(a: Array, b: Array) -> Array:
    """Product of matrices of small integers, computed exactly in fast float64."""
    return products.matmul(a.astype(np.float64), b.astype(np.float64))


@builtin("MatMulInteger", since=10)
def matmul_integer(
    ctx: Context,
    a: Array,
    b: Array,
    a_zero_point: Array | None = None,
    b_zero_point: Array | None = None,
) -> None:
    """Product of integer matrices less their zero points, as int32."""
    out = ctx.out(products.product_shape(a, b))
    left, right = shifted(a, a_zero_point, axis=-2), shifted(b, b_zero_point, axis=-1)
    out[...] = exact_product(left, right)


def _vector(xp: ArrayModule, parameter: Array, axis: int, ndim: int) -> Array:
    """Scales of the rows (axis -2) or columns (axis -1) of a matrix, in its rank."""
    if parameter.ndim != 1 or parameter.size == 1:
        return parameter.reshape(()) if parameter.size == 1 else parameter
    shape = [1] * max(ndim, 2)
    shape[axis] = -1
    return xp.asarray(parameter).reshape(shape)


@builtin("QLinearMatMul", since=10)
def qlinear_matmul(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    a: Array, a_scale: Array, a_zero_point: Array,
    b: Array, b_scale: Array, b_zero_point: Array,
    y_scale: Array, y_zero_point: Array,
) -> None:  # fmt: skip
    """Product of quantized matrices, quantized."""
    xp = ctx.xp
    y = ctx.out(products.product_shape(a, b))
    total = exact_product(shifted(a, a_zero_point, axis=-2), shifted(b, b_zero_point, axis=-1))
    scales = (at_least_float32(scale) for scale in (a_scale, b_scale, y_scale))
    rows, columns, result = map(_vector, (xp,) * 3, scales, (-2, -1, -2), (a.ndim, b.ndim, y.ndim))
    zero = _vector(xp, y_zero_point, -2, y.ndim)
    y[...] = requantize(xp, total, rows * columns / result, zero, y.dtype)
