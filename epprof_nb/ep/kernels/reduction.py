"""Reductions along axes."""

from __future__ import annotations

from epprof_nb.ep.kernel import Array, Context, builtin


def _reduction(op_type: str, function: str, since: int) -> None:
    def kernel(ctx: Context, x: Array, axes: Array | None = None) -> None:
        chosen = tuple(axes.tolist()) if axes is not None and axes.size else None
        if chosen is None and ctx.attrs["noop_with_empty_axes"]:
            ctx.out(x.shape)[...] = x
            return
        keep = bool(ctx.attrs["keepdims"])
        removed = range(x.ndim) if chosen is None else [a % x.ndim for a in chosen]
        shape = [
            1 if i in removed else n for i, n in enumerate(x.shape) if keep or i not in removed
        ]
        out = ctx.out(shape)
        getattr(ctx.xp, function)(x, axis=chosen, keepdims=keep, out=out)

    kernel.__name__ = op_type.lower()
    options = {"types": "float16 float32 float64"} if function == "mean" else {}
    builtin(op_type, since=since, host_inputs=[1], **options)(kernel)


for _op_type, _function, _since in (
    ("ReduceMax", "max", 18), ("ReduceMean", "mean", 18), ("ReduceMin", "min", 18),
    ("ReduceSum", "sum", 13),
):  # fmt: skip
    _reduction(_op_type, _function, _since)


def _mean_before_18(ctx: Context, x: Array) -> None:
    axes, keep = ctx.attrs.get("axes"), bool(ctx.attrs["keepdims"])
    removed = range(x.ndim) if axes is None else [a % x.ndim for a in axes]
    shape = [1 if i in removed else n for i, n in enumerate(x.shape) if keep or i not in removed]
    ctx.xp.mean(x, axis=axes, keepdims=keep, out=ctx.out(shape))


_mean_before_18.__name__ = "reducemean"
builtin("ReduceMean", since=1, until=17, types="float16 float32 float64")(_mean_before_18)
