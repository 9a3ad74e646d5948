"""Floating-point types with lower precision than float16: bfloat16, and 8-bit types.

ml_dtypes adds them to NumPy. Kernels compute with them in float32, and round the result once.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep import types

if TYPE_CHECKING:
    from collections.abc import Callable

_MISROUNDED = {"float8_e4m3fn": (480, 496, 448), "float8_e5m2": (61440, 65536, np.nan)}
"""Begin and end of numbers beyond the range, and the result of ONNX Runtime's CPU provider for them
without saturation. ONNX specifies NaN and infinity."""

COMPUTED = tuple(name for name in types.SMALL_FLOATS if name == "bfloat16")
"""Types with which kernels compute."""


def is_small(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype comes from ml_dtypes."""
    # float8_e5m2 has the same kind as NumPy's floats.
    return dtype.kind == "V" or (dtype.kind == "f" and dtype.itemsize == 1)


class _Wide:
    """The context of a node whose kernel computes in float32."""

    def __init__(self, ctx: Any) -> None:  # noqa: ANN401
        self._ctx = ctx
        self._made: list[tuple[Any, Any]] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._ctx, name)

    def out(self, shape: Any, *, index: int | None = None) -> Any:  # noqa: ANN401
        """Return an array of float32 for an output with fewer bits."""
        made = self._ctx.out(shape, index=index)
        if made is None or not is_small(made.dtype):
            return made
        wide = self._ctx.xp.empty(made.shape, np.float32)
        self._made.append((made, wide))
        return wide

    def repeat_launches(self) -> None:
        """Do nothing: CuPy launches the conversions, which are not repeated."""

    def write(self) -> None:
        """Round the outputs."""
        for made, wide in self._made:
            made[...] = wide.astype(made.dtype)


def through_float32(kernel: Callable[..., None]) -> Callable[..., None]:
    """Return a kernel that computes in float32 if an input has one of the small types."""
    if not types.SMALL_FLOATS:
        return kernel

    @functools.wraps(kernel)
    def run(ctx: Any, *inputs: Any) -> None:  # noqa: ANN401
        for x in inputs:
            if x is not None and x.dtype.kind == "V":  # bfloat16, the only type that it gets
                break
        else:
            kernel(ctx, *inputs)
            return
        wide = _Wide(ctx)
        kernel(wide, *(widened(x) for x in inputs))
        wide.write()

    return run


def widened(x: Any) -> Any:  # noqa: ANN401
    """Return an array with fewer bits as float32; return others and None unchanged."""
    return x.astype(np.float32) if x is not None and is_small(x.dtype) else x


def cast(xp: Any, x: Any, dtype: np.dtype[Any], *, saturate: bool = True) -> Any:  # noqa: ANN401
    """Return an array in another dtype, as ONNX's operator Cast does.

    Parameters
    ----------
    xp
        Array module.
    x
        The array.
    dtype
        Dtype of the result.
    saturate
        Whether numbers beyond the range of an 8-bit type become its largest number; otherwise they
        become infinity or NaN.
    """
    if is_small(dtype) and dtype.itemsize == 1:
        x = x.astype(np.float32)  # ONNX Runtime rounds the bits of float32
        if saturate:
            largest = x.dtype.type(_largest(dtype))
            x = xp.clip(x, -largest, largest)
        elif dtype.name in _MISROUNDED:
            first, end, value = map(x.dtype.type, _MISROUNDED[dtype.name])
            size = xp.abs(x)
            x = xp.where((size >= first) & (size < end), xp.copysign(value, x), x)
    return x.astype(dtype)


@functools.cache
def _largest(dtype: np.dtype[Any]) -> float:
    """Return the largest finite number of a dtype of ml_dtypes."""
    import ml_dtypes

    limits: Callable[..., Any] = ml_dtypes.finfo
    return float(limits(dtype).max)
