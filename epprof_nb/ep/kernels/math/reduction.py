"""Reductions along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.cuda.reductions import reduce_on_device
from epprof_nb.ep.kernels.math.extremes import place_of_extreme
from epprof_nb.ep.kernels.shared.averages import mean
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.without_warnings import quiet

if TYPE_CHECKING:
    from collections.abc import Callable

Axes: TypeAlias = "tuple[int, ...] | None"


def _lowest(dtype: Any) -> Any:  # noqa: ANN401
    return {"f": -np.inf, "b": False}.get(dtype.kind) if dtype.kind in "fb" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:  # noqa: ANN401
    return {"f": np.inf, "b": True}.get(dtype.kind) if dtype.kind in "fb" else np.iinfo(dtype).max


def _max(xp: ArrayModule, x: Array, **how: Any) -> Array:
    return xp.max(x, **how) if x.size else _of_nothing(xp, x, _lowest(x.dtype), **how)


def _min(xp: ArrayModule, x: Array, **how: Any) -> Array:
    return xp.min(x, **how) if x.size else _of_nothing(xp, x, _highest(x.dtype), **how)


def _of_nothing(xp: ArrayModule, x: Array, value: Any, axis: Axes, keepdims: bool) -> Array:  # noqa: ANN401, FBT001
    """Return a value in the shape of a reduction; CuPy's reductions lack ``initial``."""
    shape = np.sum(np.empty(x.shape), axis=axis, keepdims=keepdims).shape
    return xp.full(shape, value, x.dtype)


def _log_sum_exp(xp: ArrayModule, x: Array, axis: Axes, keepdims: bool) -> Array:  # noqa: FBT001
    # NumPy reduces an empty axis only with an initial value.
    largest = _max(xp, x, axis=axis, keepdims=True)
    largest = xp.where(xp.isfinite(largest), largest, x.dtype.type(0))
    total = xp.log(xp.exp(x - largest).sum(axis=axis, keepdims=True)) + largest
    if keepdims:
        return total
    return total.sum(axis=axis)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "ReduceL1": lambda xp, x, **how: xp.abs(x).sum(**how),
    "ReduceL2": lambda xp, x, **how: xp.sqrt(xp.square(x).sum(**how)),
    "ReduceLogSum": lambda xp, x, **how: xp.log(x.sum(**how)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _max,
    "ReduceMean": lambda _, x, **how: mean(x, **how),
    "ReduceMin": _min,
    "ReduceProd": lambda _, x, **how: x.prod(**how),
    "ReduceSum": lambda _, x, **how: x.sum(**how),
    "ReduceSumSquare": lambda xp, x, **how: xp.square(x).sum(**how),
}


def _reduce(ctx: Context, op_type: str, x: Array, axes: Axes) -> None:
    keep = bool(ctx.attrs["keepdims"])
    ndim = x.ndim
    if not ndim:
        axes = ()  # like ONNX Runtime, which ignores the axes of a scalar
    removed = range(ndim) if axes is None else {nonnegative(axis, ndim) for axis in axes}
    shape = [1 if i in removed else n for i, n in enumerate(x.shape) if keep or i not in removed]
    out = ctx.out(shape)
    if ctx.xp is not np and reduce_on_device(ctx.xp, op_type, x, removed, out):
        ctx.repeat_launches()
        return
    how = {"axis": None if axes is None else tuple(removed), "keepdims": keep}
    out[...] = _FUNCTIONS[op_type](ctx.xp, at_least_float32(x), **how)


def _reduction(op_type: str, since: int) -> None:
    @quiet
    def kernel(ctx: Context, x: Array, axes: Array | None = None) -> None:
        if axes is not None and axes.ndim != 1:
            raise ValueError(f"axes has {axes.ndim} dimensions, not 1")
        chosen = tuple(axes.reshape(-1).tolist()) if axes is not None and axes.size else None
        if chosen is None and ctx.attrs["noop_with_empty_axes"]:
            chosen = ()
        _reduce(ctx, op_type, x, chosen)

    @quiet
    def kernel_with_attribute(ctx: Context, x: Array) -> None:
        _reduce(ctx, op_type, x, ctx.attrs.get("axes") or None)

    kernel.__name__ = kernel_with_attribute.__name__ = op_type.lower()
    builtin(op_type, since=since, host_inputs=[1])(kernel)
    builtin(op_type, since=1, until=since - 1)(kernel_with_attribute)


for _op_type in _FUNCTIONS:
    _reduction(_op_type, 13 if _op_type == "ReduceSum" else 18)


def _arg(op_type: str) -> None:
    def kernel(ctx: Context, x: Array) -> None:
        axis = nonnegative(ctx.attrs["axis"], x.ndim)
        last = bool(ctx.attrs.get("select_last_index"))
        index = place_of_extreme(ctx.xp, x, axis, smallest=op_type == "ArgMin", last=last)
        shape = list(x.shape)
        shape[axis : axis + 1] = [1] if ctx.attrs["keepdims"] else []
        ctx.out(shape)[...] = index.reshape(shape)

    kernel.__name__ = op_type.lower()
    builtin(op_type, since=1)(kernel)


_arg("ArgMax")
_arg("ArgMin")
