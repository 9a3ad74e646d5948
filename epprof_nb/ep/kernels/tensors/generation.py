"""Tensors that a few numbers describe: constants, ranges, triangles, window functions."""

from __future__ import annotations

import math

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.cuda.constants import constant
from epprof_nb.ep.kernels.shared.without_warnings import quiet


@builtin("ConstantOfShape", since=9, host_inputs=[0])
def constant_of_shape(ctx: Context, shape: Array) -> None:
    """A tensor of one value."""
    value = ctx.attrs.get("value")
    if shape.ndim != 1:
        raise ValueError(f"the shape has {shape.ndim} dimensions, not 1")
    ctx.out(shape.tolist())[...] = 0 if value is None else value.reshape(-1)[0]


@builtin("EyeLike", since=9)
def eye_like(ctx: Context, x: Array) -> None:
    """Ones on a diagonal of a matrix."""
    out = ctx.out(x.shape)
    out[...] = ctx.xp.eye(*x.shape, k=ctx.attrs["k"], dtype=out.dtype)


@builtin("Range", since=11, host_inputs=[0, 1, 2])
def range_(ctx: Context, start: Array, limit: Array, delta: Array) -> None:
    """Numbers from a start to a limit."""
    first, last, step = (v.reshape(()).item() for v in (start, limit, delta))
    count = max(math.ceil((last - first) / step), 0)
    out = ctx.out((count,))
    kind = np.dtype(np.float32) if out.dtype == np.float16 else out.dtype
    out[...] = ctx.xp.arange(count).astype(kind) * kind.type(step) + kind.type(first)


@builtin("Trilu", since=14, host_inputs=[1])
def trilu(ctx: Context, x: Array, k: Array | None = None) -> None:
    """The upper or lower triangle of matrices; zeros elsewhere."""
    diagonal = 0 if k is None else int(k.reshape(()))
    rows = ctx.xp.arange(x.shape[-2]).reshape(-1, 1)
    columns = ctx.xp.arange(x.shape[-1])
    kept = columns >= rows + diagonal if ctx.attrs["upper"] else columns <= rows + diagonal
    ctx.out(x.shape)[...] = ctx.xp.where(kept, x, x.dtype.type(0))


def _window(op_type: str, coefficients: tuple[float, float, float]) -> None:
    @quiet
    def kernel(ctx: Context, size: Array) -> None:
        count = int(size.reshape(()))
        intervals = count if ctx.attrs["periodic"] else count - 1
        angle = ctx.xp.arange(count) * (2 * math.pi / intervals if intervals else math.nan)
        a, b, c = coefficients
        ctx.out((count,))[...] = a - b * ctx.xp.cos(angle) + c * ctx.xp.cos(2 * angle)

    kernel.__name__ = op_type.lower()
    builtin(op_type, since=17, host_inputs=[0])(kernel)


_window("HannWindow", (0.5, 0.5, 0.0))
_window("HammingWindow", (25 / 46, 21 / 46, 0.0))
_window("BlackmanWindow", (0.42, 0.5, 0.08))


@builtin("MelWeightMatrix", since=17, host_inputs=[0, 1, 2, 3, 4])
def mel_weight_matrix(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context, bins: Array, dft_length: Array, rate: Array, low: Array, high: Array
) -> None:
    """Triangular filters of the mel scale, one column per band."""
    count, length = int(bins.reshape(())), int(dft_length.reshape(()))
    lines = length // 2 + 1
    mel = 2595 * np.log10(1 + np.array([float(low), float(high)]) / 700)
    points = np.linspace(0, count + 1, count + 2) * ((mel[1] - mel[0]) / (count + 2)) + mel[0]
    edges = ((length + 1) * (700 * (10 ** (points / 2595) - 1)) // int(rate.reshape(()))).astype(
        int
    )
    weights = np.zeros((lines, count))
    for band in range(count):
        left, center, right = edges[band : band + 3]
        rise, fall = np.arange(left, center + 1), np.arange(center, right)
        if center == left:
            weights[center, band] = 1
        else:
            weights[rise, band] = (rise - left) / (center - left)
        if right > center:
            weights[fall, band] = (right - fall) / (right - center)
    ctx.out((lines, count))[...] = constant(ctx.xp, weights)
