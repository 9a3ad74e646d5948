"""Cumulative sums and products."""

from __future__ import annotations

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.shared.axes import nonnegative


def _cumulative(op_type: str, function: str, since: int) -> None:
    def kernel(ctx: Context, x: Array, axis: Array) -> None:
        xp = ctx.xp
        along = nonnegative(int(axis.reshape(())), x.ndim)
        ordered = xp.flip(x, axis=along) if ctx.attrs["reverse"] else x
        result = getattr(xp, function)(ordered, axis=along, dtype=x.dtype)
        if ctx.attrs["exclusive"] and x.shape[along]:
            first = xp.full_like(
                result[(slice(None),) * along + (slice(0, 1),)], function == "cumprod"
            )
            rest = result[(slice(None),) * along + (slice(0, -1),)]
            result = xp.concatenate([first, rest], axis=along)
        ctx.out(x.shape)[...] = xp.flip(result, axis=along) if ctx.attrs["reverse"] else result

    kernel.__name__ = function
    builtin(op_type, since=since, host_inputs=[1])(kernel)


_cumulative("CumSum", "cumsum", 11)
_cumulative("CumProd", "cumprod", 26)
