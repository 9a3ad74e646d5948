"""Mixtures of experts of ``com.microsoft``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.layers.fused import unpack
from epprof_nb.ep.kernels.math.activation import gelu_tanh, sigmoid
from epprof_nb.ep.kernels.shared.checks import expect_shape
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.without_warnings import quiet
from epprof_nb.ep.products import products

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.ep.kernel_limits import Limits

    Weights = Callable[[int], Array]

_CONTRIB = "com.microsoft"
_ACTIVATIONS = ("relu", "gelu", "silu", "identity", "swiglu")
_LIMITS: Limits = {
    f"activation_type is not one of {', '.join(_ACTIVATIONS)}": lambda node: (
        node.attrs.get("activation_type") not in _ACTIVATIONS
    ),
    "swiglu is not interleaved": lambda node: (
        node.attrs.get("activation_type") == "swiglu" and node.attrs.get("swiglu_fusion") != 1
    ),
    "swiglu_limit_after_activation is set": lambda node: bool(
        node.attrs.get("swiglu_limit_after_activation")
    ),
    "k is not positive": lambda node: node.attrs.get("k", 1) < 1,
    "use_sparse_mixer is set": lambda node: bool(node.attrs.get("use_sparse_mixer")),
}


def _activated(ctx: Context, h: Array) -> Array:
    xp, attrs = ctx.xp, ctx.attrs
    name = attrs["activation_type"]
    if name == "swiglu":
        limit = attrs.get("swiglu_limit", np.inf)
        gate, linear = xp.minimum(h[:, ::2], limit), xp.clip(h[:, 1::2], -limit, limit)
        return (
            gate
            * sigmoid(xp, gate * attrs["activation_alpha"])
            * (linear + attrs["activation_beta"])
        )
    if name == "relu":
        return xp.maximum(h, 0)
    if name == "gelu":
        return gelu_tanh(xp, h)
    return h * sigmoid(xp, h) if name == "silu" else h


def _shares(ctx: Context, router: Array, *, normalized: bool) -> Array:
    """Return the weight of each expert for each token, which is 0 for most of them."""
    xp, wide = ctx.xp, at_least_float32(router)
    e = xp.exp(wide - wide.max(axis=1, keepdims=True))
    shares = e / e.sum(axis=1, keepdims=True)
    # Of equal experts, the last ones are chosen.
    order = xp.argsort(-shares[:, ::-1], axis=1, kind="stable")[:, : ctx.attrs["k"]]
    chosen = xp.arange(len(shares))[:, None], shares.shape[1] - 1 - order
    kept = xp.zeros_like(shares)
    kept[chosen] = shares[chosen]
    if normalized:
        kept /= kept.sum(axis=1, keepdims=True)
    return kept


def _mix(  # noqa: PLR0917 - the inputs of the operators
    ctx: Context,
    x: Array, router: Array,
    first: Weights, first_bias: Array | None, second: Weights, second_bias: Array | None,
) -> None:  # fmt: skip
    """Write the sum of the experts of each token, each two layers with an activation between."""
    xp, experts = ctx.xp, router.shape[1]
    if ctx.attrs["k"] > experts:
        raise ValueError(f"k={ctx.attrs['k']}, and there are {experts} experts")
    tokens = at_least_float32(x).reshape(-1, x.shape[-1])
    # The shares of quantized experts always sum to 1.
    normalized = ctx.op_type == "QMoE" or ctx.attrs["normalize_routing_weights"] == 1
    shares = _shares(ctx, router, normalized=normalized)
    y = xp.zeros_like(tokens)
    for expert in range(experts):
        # Selecting tokens would wait for a CUDA device.
        rows: Any = np.flatnonzero(shares[:, expert]) if xp is np else slice(None)
        if xp is np and not rows.size:
            continue
        h = products.matmul(tokens[rows], first(expert).T)
        h = _activated(ctx, h if first_bias is None else h + first_bias[expert])
        h = products.matmul(h, second(expert).T)
        h = h if second_bias is None else h + second_bias[expert]
        y[rows] += shares[rows, expert, None] * h
    ctx.out(x.shape)[...] = y.reshape(x.shape)


def _widths(ctx: Context, x: Array, second_size: int) -> tuple[int, int, int]:
    """Return the widths of the input, of the second layer's input and the first one's output."""
    hidden = x.shape[-1]
    inner = second_size // hidden
    return hidden, inner, inner * (2 if ctx.attrs["activation_type"] == "swiglu" else 1)


_DENSE: Limits = {**_LIMITS, "it has fc3_experts_weights": lambda node: node.has_input(6, 7)}


@builtin("MoE", domain=_CONTRIB, since=1, limits=_DENSE)
@quiet
def mixture(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, router: Array,
    first: Array, first_bias: Array | None, second: Array, second_bias: Array | None = None,
    *_: None,
) -> None:  # fmt: skip
    """Sum of the experts that a router chooses for each token."""
    hidden, inner, outer = _widths(ctx, x, second[0].size)
    first, second = first.reshape(-1, outer, hidden), second.reshape(-1, hidden, inner)
    _mix(
        ctx, x, router, lambda e: at_least_float32(first[e]), first_bias,
        lambda e: at_least_float32(second[e]), second_bias,
    )  # fmt: skip


_PACKED: Limits = {
    **_LIMITS,
    "it has fc3_experts_weights": lambda node: node.has_input(8, 9, 10, 13),
    "it has router_weights or scales of activations": lambda node: node.has_input(*range(14, 21)),
    "it has fc1_, fc2_ or fc3_expert_weight_bits": lambda node: any(
        node.attrs.get(f"fc{n}_expert_weight_bits") for n in (1, 2, 3)
    ),
    "swiglu_fusion is set for another activation": lambda node: (
        node.attrs.get("activation_type") != "swiglu" and bool(node.attrs.get("swiglu_fusion"))
    ),
    "it has no scales": lambda node: not (node.has_input(3) and node.has_input(6)),
    "quant_type is not int": lambda node: node.attrs.get("quant_type", "int") != "int",
    # With 2 bits, the CPU provider rounds the inputs to 8 bits.
    "expert_weight_bits is not 4 or 8": lambda node: (
        node.attrs.get("expert_weight_bits", 4) not in (4, 8)
    ),
    "weights_prepacked is set": lambda node: node.attrs.get("weights_prepacked", -1) > 0,
}


@builtin("QMoE", domain=_CONTRIB, since=1, types={"T1": "uint8", "T2": "float16 float32"},
         limits=_PACKED)  # fmt: skip
@quiet
def quantized_mixture(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, router: Array,
    first: Array, first_scales: Array, first_bias: Array | None,
    second: Array, second_scales: Array, second_bias: Array | None = None,
    _third: None = None, _third_scales: None = None, _third_bias: None = None,
    first_zeros: Array | None = None, second_zeros: Array | None = None,
    *_: None,
) -> None:  # fmt: skip
    """Sum of the experts that a router chooses for each token, of 4 or 8 bits per weight."""
    bits, block = ctx.attrs["expert_weight_bits"], ctx.attrs.get("block_size", 0)
    hidden, inner, outer = _widths(ctx, x, second[0].size * 8 // bits)

    def weights(
        packed: Array, scales: Array, zeros: Array | None, shape: tuple[int, int]
    ) -> Weights:
        if block:
            expect_shape("zero_points", zeros, (*scales.shape[:2], -(-scales.shape[2] * bits // 8)))

        def of_expert(expert: int) -> Array:
            found = unpack(ctx.xp, packed[expert].reshape(shape[0], -1), bits).astype(np.float32)
            given = None if zeros is None else zeros[expert]
            return _scaled(ctx.xp, found, scales[expert], given, bits, block)

        return of_expert

    _mix(
        ctx, x, router,
        weights(first, first_scales, first_zeros, (outer, hidden)), first_bias,
        weights(second, second_scales, second_zeros, (hidden, inner)), second_bias,
    )  # fmt: skip


def _scaled(  # noqa: PLR0917 - the parameters of the quantization
    xp: ArrayModule, numbers: Array, scales: Array, zeros: Array | None, bits: int, block: int
) -> Array:
    """Return the weights that packed numbers stand for, scaled by row or by block of a row."""
    rows, columns = numbers.shape
    factors = scales.astype(np.float32).reshape(rows, -1)
    blocks = factors.shape[1]
    if zeros is None:
        shift = np.float32(2 ** (bits - 1))
    elif not block:  # packed along the rows
        shift = unpack(xp, zeros.reshape(1, -1), bits)[0, :rows, None].astype(np.float32)
    else:
        shift = unpack(xp, zeros.reshape(rows, -1), bits)[:, :blocks].astype(np.float32)
        shift = xp.repeat(shift, block, axis=1)[:, :columns]
    if blocks > 1:
        factors = xp.repeat(factors, block, axis=1)[:, :columns]
    return (numbers - shift) * factors
