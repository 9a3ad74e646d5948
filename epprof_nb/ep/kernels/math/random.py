"""Random numbers, and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional


def generator(ctx: Context) -> Any:  # noqa: ANN401
    """Return a random generator: the same numbers in each run if the node has a seed.

    ONNX's reference implementation of these operators uses the same generator.
    """
    seed = ctx.attrs.get("seed")
    # Any float is a seed; a generator takes integers.
    bits = int(seed) if seed is not None and 0 <= seed < 2**32 else None
    return np.random.RandomState(bits)


@builtin("Dropout", since=12, host_inputs=[1, 2])
def dropout(
    ctx: Context, x: Array, ratio: Array | None = None, training: Array | None = None
) -> None:
    """The input itself; in training, with random elements set to 0 and the others scaled."""
    _drop(ctx, x, ratio, training)


@builtin("BiasDropout", domain="com.microsoft", since=1, host_inputs=[3, 4])
def bias_dropout(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, bias: Array, residual: Array | None = None,
    ratio: Array | None = None, training: Array | None = None,
) -> None:  # fmt: skip
    """Dropout of a sum, and then another sum."""
    _drop(ctx, x + bias, ratio, training, residual)


def _drop(
    ctx: Context,
    x: Array, ratio: Array | None, training: Array | None, residual: Array | None = None,
) -> None:  # fmt: skip
    share = 0.5 if ratio is None else float(ratio.reshape(()))
    xp, added = ctx.xp, x.dtype.type(0) if residual is None else residual
    if training is None or not bool(training.reshape(())) or share == 0:
        ctx.out(x.shape, index=0)[...] = x + added
        write_optional(ctx, 1, xp.ones(x.shape, bool))
        return
    kept = xp.asarray(generator(ctx).random_sample(x.shape) >= share)
    ctx.out(x.shape, index=0)[...] = x * kept / x.dtype.type(1 - share) + added
    write_optional(ctx, 1, kept)


@builtin("Dropout", since=7, until=11)
def _dropout_before_12(ctx: Context, x: Array) -> None:
    ctx.out(x.shape, index=0)[...] = x
    write_optional(ctx, 1, ctx.xp.zeros(x.shape, bool))  # as in ONNX Runtime


@builtin("Bernoulli", since=15, host_inputs=[0])
def bernoulli(ctx: Context, x: Array) -> None:
    """1 with the probability in the element, else 0."""
    ctx.out(x.shape)[...] = ctx.xp.asarray(generator(ctx).binomial(1, x))


def _random(op_type: str, *, like: bool, normal: bool) -> None:
    def write(ctx: Context, shape: tuple[int, ...]) -> None:
        a, source = ctx.attrs, generator(ctx)
        values = (
            source.normal(a["mean"], a["scale"], shape)
            if normal
            else source.uniform(a["low"], a["high"], shape)
        )
        ctx.out(shape)[...] = ctx.xp.asarray(values)

    def kernel_like(ctx: Context, x: Array) -> None:
        write(ctx, x.shape)

    def kernel(ctx: Context) -> None:
        write(ctx, ctx.attrs["shape"])

    chosen = kernel_like if like else kernel
    chosen.__name__ = op_type.lower()
    builtin(op_type, since=1)(chosen)


_random("RandomNormal", like=False, normal=True)
_random("RandomNormalLike", like=True, normal=True)
_random("RandomUniform", like=False, normal=False)
_random("RandomUniformLike", like=True, normal=False)
