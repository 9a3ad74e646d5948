"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.windows import frames


def _complex(x: Array) -> Array:
    """Return complex numbers for pairs of reals along the last axis, or reals for single reals."""
    wide = at_least_float32(x)
    return wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def _pairs(xp: ArrayModule, z: Array) -> Array:
    return xp.stack([z.real, z.imag], axis=-1)


def _transform(ctx: Context, x: Array, length: Array | None, axis: int) -> None:
    xp, attrs = ctx.xp, ctx.attrs
    along = nonnegative(axis, x.ndim)
    if along == x.ndim - 1:
        raise ValueError("the last axis holds real and imaginary parts and has no transform")
    count = int(length.reshape(())) if length is not None else None
    values = _complex(x)
    if attrs["inverse"] and attrs["onesided"]:
        if x.shape[-1] != 2:
            raise ValueError("the inverse of a one-sided transform takes complex numbers")
        whole = count or 2 * (x.shape[along] - 1)
        result = xp.fft.irfft(values, n=whole, axis=along)[..., None]
    elif attrs["inverse"]:
        result = _pairs(xp, xp.fft.ifft(values, n=count, axis=along))
    elif attrs["onesided"] and values.dtype.kind == "f":
        result = _pairs(xp, xp.fft.rfft(values, n=count, axis=along))
    else:
        found = xp.fft.fft(values, n=count, axis=along)
        if attrs["onesided"]:
            found = xp.take(found, range(found.shape[along] // 2 + 1), axis=along)
        result = _pairs(xp, found)
    ctx.out(result.shape)[...] = result


@builtin("DFT", since=20, host_inputs=[1, 2])
def dft(ctx: Context, x: Array, length: Array | None = None, axis: Array | None = None) -> None:
    """Discrete Fourier transform."""
    _transform(ctx, x, length, -2 if axis is None else int(axis.reshape(())))


@builtin("DFT", since=17, until=19, host_inputs=[1])
def _dft_before_20(ctx: Context, x: Array, length: Array | None = None) -> None:
    _transform(ctx, x, length, ctx.attrs["axis"])


@builtin("STFT", since=17, host_inputs=[1, 3])
def stft(
    ctx: Context, x: Array, step: Array, window: Array | None = None, length: Array | None = None
) -> None:
    """Discrete Fourier transforms of overlapping parts of a signal."""
    xp = ctx.xp
    hop = int(step.reshape(()))
    size = (
        int(length.reshape(()))
        if length is not None
        else window.shape[0]
        if window is not None
        else x.shape[1]
    )
    values = _complex(x if x.ndim == 3 else x[..., None])
    parts = frames(xp, values, size, hop)
    if window is not None:
        parts = parts * at_least_float32(window)
    if ctx.attrs["onesided"]:
        result = _pairs(xp, xp.fft.rfft(parts.real, axis=-1))
    else:
        result = _pairs(xp, xp.fft.fft(parts, axis=-1))
    ctx.out(result.shape)[...] = result.astype(np.float64)
