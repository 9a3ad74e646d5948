"""Attention and rotary embedding of ONNX's own domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.layers.scaled_dot_product import (
    Stages,
    attend,
    causal_mask,
    expect_same_batch,
    merge_heads,
    rotate,
    split_heads,
)  # fmt: skip
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional
from epprof_nb.ep.kernels.shared.without_warnings import quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.ep.kernel import Attributes
    from epprof_nb.ep.kernel_limits import Limits


def _mask_and_bias(
    xp: ArrayModule,
    given: Array | None,
    columns: int,
) -> tuple[Array | None, Array | None]:
    """Return the mask and the bias of an input, padded to all columns."""
    if given is None:
        return None, None
    missing = columns - given.shape[-1]
    if missing > 0:
        fill = False if given.dtype == bool else -np.inf
        widths = [(0, 0)] * (given.ndim - 1) + [(0, missing)]
        given = xp.pad(given, widths, constant_values=fill)
    return (given, None) if given.dtype == bool else (None, given)


def _both(a: Array | None, b: Array | None) -> Array | None:
    return b if a is None else a if b is None else a & b


def _windows(
    xp: ArrayModule, attrs: Attributes, rows: int, columns: int, offset: Array | int
) -> Iterator[Array]:
    """Yield masks of the columns that each row sees: the causal mask and the node's windows."""
    left, right = attrs.get("left_window_size", -1), attrs.get("right_window_size", -1)
    if attrs["is_causal"]:
        yield causal_mask(xp, rows, columns, offset)
    if right >= 0:
        yield causal_mask(xp, rows, columns, offset + right)
    if left >= 0:
        yield ~causal_mask(xp, rows, columns, offset - left - 1)


_NEGATIVE: Limits = {"scale is negative": lambda node: node.attrs.get("scale", 0) < 0}


@builtin("Attention", since=23, limits=_NEGATIVE)
@quiet
def attention(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    q: Array, k: Array, v: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None, past_value: Array | None = None,
    valid: Array | None = None,
) -> None:  # fmt: skip
    """Scaled dot-product attention, with several heads and a cache."""
    xp, attrs = ctx.xp, ctx.attrs
    flat = q.ndim == 3
    if flat:
        q = split_heads(q, attrs["q_num_heads"])
        k, v = (split_heads(x, attrs["kv_num_heads"]) for x in (k, v))
    expect_same_batch(q, k, v)
    offset: Any = 0
    if past_key is not None:
        offset = past_key.shape[2]
        k = xp.concatenate([past_key, k], axis=2)
        v = xp.concatenate([past_value, v], axis=2)
    elif valid is not None:
        offset = valid - q.shape[2]
    rows, columns = q.shape[2], k.shape[2]
    mask, bias = _mask_and_bias(xp, attn_mask, columns)
    given = None if valid is None else xp.arange(columns) < valid.reshape(-1, 1, 1, 1)
    mask = _both(mask, given)
    for visible in _windows(xp, attrs, rows, columns, offset):
        mask = _both(mask, visible)
    stages = Stages() if ctx.num_outputs > 3 else None
    y = attend(
        xp, q, k, v, scale=attrs.get("scale", 0.0), bias=bias, mask=mask,
        softcap=attrs["softcap"], stages=stages,
    )  # fmt: skip
    y = merge_heads(y) if flat else y
    ctx.out(y.shape, index=0)[...] = y
    write_optional(ctx, 1, k)
    write_optional(ctx, 2, v)
    if stages is not None:
        if given is not None:
            # ONNX Runtime shows minus infinity only for keys that a mask excludes.
            least = np.finfo(stages.masked.dtype).min
            stages.masked = xp.where(given, stages.masked, least)
        shown = (stages.raw, stages.capped, stages.masked, stages.probabilities)
        write_optional(ctx, 3, shown[attrs["qk_matmul_output_mode"]])


@builtin("RotaryEmbedding", since=23)
def rotary_embedding(
    ctx: Context, x: Array, cos: Array, sin: Array, positions: Array | None = None
) -> None:
    """Pairs of elements rotated by angles that depend on the position."""
    attrs = ctx.attrs
    heads = split_heads(x, attrs["num_heads"]) if x.ndim == 3 else x
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    y = rotate(
        ctx.xp, heads, cos, sin, interleaved=bool(attrs["interleaved"]),
        size=attrs["rotary_embedding_dim"],
    )  # fmt: skip
    ctx.out(x.shape)[...] = merge_heads(y) if x.ndim == 3 else y
