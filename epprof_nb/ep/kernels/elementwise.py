"""Element by element: arithmetic, comparisons, activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin


def _unary(op_type: str, function: str, **options: Any) -> None:
    def kernel(ctx: Context, x: Array) -> None:
        getattr(ctx.xp, function)(x, out=ctx.out(x.shape, x.dtype))

    kernel.__name__ = function
    builtin(op_type, **options)(kernel)


def _binary(op_type: str, function: str, **options: Any) -> None:
    def kernel(ctx: Context, a: Array, b: Array) -> None:
        getattr(ctx.xp, function)(a, b, out=ctx.out(np.broadcast_shapes(a.shape, b.shape)))

    kernel.__name__ = function
    builtin(op_type, **options)(kernel)


for _op_type, _function in {
    "Abs": "absolute", "Ceil": "ceil", "Cos": "cos", "Exp": "exp", "Floor": "floor", "Log": "log",
    "Neg": "negative", "Sin": "sin", "Sqrt": "sqrt", "Tanh": "tanh",
}.items():  # fmt: skip
    _unary(_op_type, _function)
for _op_type, _function in {
    "Add": "add", "Sub": "subtract", "Mul": "multiply",
}.items():  # fmt: skip
    _binary(_op_type, _function, since=7)


@builtin("Relu")
def relu(ctx: Context, x: Array) -> None:
    """Maximum of an element and zero."""
    ctx.xp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))
