"""Attention with a state of constant size, and the convolution before it."""

from __future__ import annotations

import math

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.layers.scaled_dot_product import merge_heads, split_heads
from epprof_nb.ep.kernels.math.activation import sigmoid
from epprof_nb.ep.kernels.shared.checks import choice, expect_shape
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.without_warnings import quiet

_RULES = ("linear", "gated", "delta", "gated_delta")


@builtin("LinearAttention", since=27)
@quiet
def linear_attention(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    query: Array, key: Array, value: Array,
    past: Array | None = None, decay: Array | None = None, beta: Array | None = None,
) -> None:  # fmt: skip
    """Attention by a state that each step decays and adds to."""
    xp, attrs = ctx.xp, ctx.attrs
    heads, shared = attrs["q_num_heads"], attrs["kv_num_heads"]
    rule = choice(attrs, "update_rule", _RULES)
    if shared < 1 or heads < 1 or heads % shared:
        raise ValueError(f"q_num_heads={heads} is not a multiple of kv_num_heads={shared}")
    q = split_heads(at_least_float32(query), heads)
    k, v = (split_heads(at_least_float32(x), shared) for x in (key, value))
    batch, _, steps, depth = k.shape
    size = v.shape[3]
    expect_shape("past_state", past, (batch, shared, depth, size))
    state = xp.zeros((batch, shared, depth, size), q.dtype)
    if past is not None:
        state[...] = past
    factors = None
    if rule.startswith("gated"):
        if decay is None:
            raise ValueError(f"update_rule={rule!r} needs the input decay")
        # One per head, or one per element of the key.
        factors = xp.exp(split_heads(at_least_float32(decay), shared))[..., None]
    rates = None
    if rule.endswith("delta"):
        if beta is None:
            raise ValueError(f"update_rule={rule!r} needs the input beta")
        rates = at_least_float32(beta).transpose(0, 2, 1)[..., None]
    grouped = q.reshape(batch, shared, heads // shared, steps, depth)
    result = xp.zeros((batch, shared, heads // shared, steps, size), q.dtype)
    for t in range(steps):
        k_t, added = k[:, :, t, :, None], v[:, :, t, None]
        if factors is not None:
            state = state * factors[:, :, t]
        if rates is not None:
            known = xp.matmul(k_t.swapaxes(2, 3), state)
            added = (added - known) * rates[:, :, t, :, None]
        state = state + k_t * added
        result[:, :, :, t] = xp.matmul(grouped[:, :, :, t], state)
    result *= result.dtype.type(attrs["scale"] or 1 / math.sqrt(depth))
    y = merge_heads(result.reshape(batch, heads, steps, size))
    ctx.out(y.shape, index=0)[...] = y
    ctx.out(state.shape, index=1)[...] = state


@builtin("CausalConvWithState", since=27)
@quiet
def causal_convolution(
    ctx: Context, x: Array, weight: Array, bias: Array | None = None, past: Array | None = None
) -> None:
    """Causal convolution of each channel with its own weights."""
    xp = ctx.xp
    batch, channels, length = x.shape
    width = weight.shape[-1]
    expect_shape("weight", weight, (channels, 1, width))
    expect_shape("bias", bias, (channels,))
    expect_shape("past_state", past, (batch, channels, width - 1))
    known = ("silu", "swish", "none")
    activation = choice(ctx.attrs, "activation", known)
    before = xp.zeros((batch, channels, width - 1), x.dtype) if past is None else past
    whole = at_least_float32(xp.concatenate([before, x], axis=2))
    factors = at_least_float32(weight)
    y = xp.zeros(x.shape, whole.dtype)
    for place in range(width):
        y += whole[:, :, place : place + length] * factors[:, :, place]
    if bias is not None:
        y += bias[:, None]
    if activation != "none":
        y *= sigmoid(xp, y)
    ctx.out(x.shape, index=0)[...] = y
    ctx.out(before.shape, index=1)[...] = whole[:, :, length:]
