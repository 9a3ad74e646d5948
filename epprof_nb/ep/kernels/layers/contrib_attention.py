"""Attention of ``com.microsoft``, which ONNX Runtime's optimizer and model exporters emit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.cuda.constants import constant
from epprof_nb.ep.kernels.layers.scaled_dot_product import (
    Stages,
    attend,
    causal_mask,
    expect_same_batch,
    merge_heads,
    rotate,
    split_heads,
)
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional
from epprof_nb.ep.kernels.shared.without_warnings import quiet
from epprof_nb.ep.products import products

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import ArrayModule
    from epprof_nb.ep.kernel_limits import Limits, StaticNode

_CONTRIB = "com.microsoft"


def _is_set(node: StaticNode, name: str) -> bool:
    return bool(node.attrs.get(name))


_POSITIONS: Limits = {
    "is_packed_batching is set": lambda node: _is_set(node, "is_packed_batching"),
}


@builtin("RotaryEmbedding", domain=_CONTRIB, since=1, limits=_POSITIONS)
def rotary_embedding(ctx: Context, x: Array, positions: Array, cos: Array, sin: Array) -> None:
    """Pairs of elements rotated by angles that depend on the position."""
    xp, attrs = ctx.xp, ctx.attrs
    size = attrs.get("rotary_embedding_dim", 0)
    heads = x
    if x.ndim == 3:
        width = x.shape[2] // attrs["num_heads"] if attrs.get("num_heads") else cos.shape[1] * 2
        heads = split_heads(x, x.shape[2] // width)
    batch, _, length, _ = heads.shape
    if positions.size == 1 and positions.ndim <= 1:
        positions = xp.arange(length) + positions.reshape(())
        positions = xp.broadcast_to(positions, (batch, length))
    y = rotate(
        xp, heads, cos[positions], sin[positions],
        interleaved=bool(attrs.get("interleaved", 0)), size=size,
    )  # fmt: skip
    scale = attrs.get("scale", 1.0)
    y = y if scale == 1 else y * y.dtype.type(scale)
    ctx.out(x.shape)[...] = merge_heads(y) if x.ndim == 3 else y


def _key_mask(xp: ArrayModule, given: Array | None, batch: int, columns: int) -> Array | None:
    """Return a mask of columns from the ends, the ends and starts, or the mask of the keys."""
    if given is None:
        return None
    places = xp.arange(columns)
    if given.ndim == 1:
        # 3 * batch + 2 numbers are the lengths of the keys, then offsets of packed sequences.
        if given.size not in (batch, 2 * batch, 3 * batch + 2):
            raise ValueError(f"a mask of {given.size} numbers does not fit a batch of {batch}")
        counts = places < given[:batch].reshape(-1, 1, 1, 1)
        if given.size == 2 * batch:
            counts &= places >= given[batch:].reshape(-1, 1, 1, 1)
        return counts
    if given.ndim > 3 or given.shape[-1] != columns:
        raise ValueError(f"a mask of the shape {given.shape} has no kernel in Python")
    shape = (given.shape[0], 1, -1, columns) if given.ndim == 3 else (-1, 1, 1, columns)
    return given.reshape(shape) > 0


def _unpacked(q: Array, k: Array | None, v: Array | None, heads: int) -> tuple[Array, Array, Array]:
    """Return queries, keys and values by head, from one, two or three inputs."""
    if k is None:  # (batch, sequence, heads, 3, size)
        return tuple(q.transpose(3, 0, 2, 1, 4))
    query = split_heads(q, heads)
    if v is None:  # (batch, sequence, heads, 2, size)
        return (query, *k.transpose(3, 0, 2, 1, 4))
    if k.ndim == 4:
        return query, k, v
    return query, split_heads(k, heads), split_heads(v, heads)


_HEADS: Limits = {
    "it has no num_heads": lambda node: not _is_set(node, "num_heads"),
    "it has past_sequence_length or cache_indirection": lambda node: node.has_input(8, 9),
}


@builtin("MultiHeadAttention", domain=_CONTRIB, since=1, limits=_HEADS)
@quiet
def multi_head_attention(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    query: Array, key: Array | None = None, value: Array | None = None,
    bias: Array | None = None, key_padding_mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None, past_value: Array | None = None,
    *_: None,
) -> None:  # fmt: skip
    """Attention of queries to keys and values, with several heads, masks and a cache."""
    xp, attrs = ctx.xp, ctx.attrs
    heads = attrs["num_heads"]
    q, k, v = _unpacked(query, key, value, heads)
    expect_same_batch(q, k, v)
    if bias is not None:
        ends = np.cumsum([heads * q.shape[3], heads * k.shape[3]]).tolist()
        parts = [p.reshape(1, heads, 1, -1) for p in xp.split(bias, ends)]
        q = q + parts[0]
        if key is None or key.ndim != 4:  # keys and values by head have theirs
            k, v = k + parts[1], v + parts[2]
    past = 0
    if past_key is not None:
        past = past_key.shape[2]
        k = xp.concatenate([past_key, k], axis=2)
        v = xp.concatenate([past_value, v], axis=2)
    rows, columns = q.shape[2], k.shape[2]
    filter_value = attrs.get("mask_filter_value", -10000.0)
    added = attention_bias
    if key_padding_mask is not None and key_padding_mask.size == 2 * q.shape[0] < columns:
        raise ValueError(f"key_padding_mask has the shape {key_padding_mask.shape}")
    mask = _key_mask(xp, key_padding_mask, q.shape[0], columns)
    if mask is not None:
        penalty = xp.where(mask, np.float32(0), np.float32(filter_value))
        added = penalty if added is None else added + penalty
    causal = causal_mask(xp, rows, columns, past) if attrs.get("unidirectional") else None
    if causal is not None and columns > past + rows:
        # As with the CPU provider, the last query sees all keys, also those that come after it.
        causal = causal | (xp.arange(rows) == rows - 1).reshape(-1, 1)
    stages = Stages() if ctx.num_outputs > 3 else None
    y = attend(xp, q, k, v, scale=attrs.get("scale", 0.0), bias=added, mask=causal, stages=stages)
    y = merge_heads(y)
    ctx.out(y.shape, index=0)[...] = y
    write_optional(ctx, 1, k)
    write_optional(ctx, 2, v)
    if stages is not None:
        write_optional(ctx, 3, stages.raw)


_GROUPS: Limits = {
    "the cache is quantized": lambda node: (
        any(node.attrs.get(name, "NONE") != "NONE" for name in ("k_quant_type", "v_quant_type"))
        or _is_set(node, "kv_cache_bit_width")
        or node.has_input(12, 13)
    ),
    "qk_output is set": lambda node: _is_set(node, "qk_output"),
    "sliding_window_cache is set": lambda node: _is_set(node, "sliding_window_cache"),
    "it has q_norm_weight or k_norm_weight": lambda node: node.has_input(14, 15),
    "it has query_seqlens": lambda node: node.has_input(16),
}


@builtin("GroupQueryAttention", domain=_CONTRIB, since=1, host_inputs=[6],
         types={"T_CACHE": "float16 float32"}, limits=_GROUPS)  # fmt: skip
@quiet
def group_query_attention(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    query: Array, key: Array | None, value: Array | None,
    past_key: Array | None, past_value: Array | None,
    last_positions: Array, total_length: Array,
    cos: Array | None = None, sin: Array | None = None, positions: Array | None = None,
    attention_bias: Array | None = None, head_sink: Array | None = None,
    *_: None,
) -> None:  # fmt: skip
    """Attention with a cache, in which several heads of queries share keys and values."""
    xp, attrs = ctx.xp, ctx.attrs
    if last_positions.ndim == 0:
        raise ValueError("seqlens_k has no dimension")
    totals = last_positions.reshape(-1) + 1
    cached = past_key, past_value, totals, int(total_length.reshape(()))
    q, k, v, start = _with_cache(ctx, (query, key, value), cached, (cos, sin, positions))
    rows, columns = q.shape[2], k.shape[2]
    mask = causal_mask(xp, rows, columns, start)
    window = attrs.get("local_window_size", -1)
    if window > 0:
        mask = mask & ~causal_mask(xp, rows, columns, start - window)
    if not attrs.get("causal", 1):
        mask = xp.arange(columns) < totals.reshape(-1, 1, 1, 1)
    if attention_bias is not None and attention_bias.shape[-1] < columns:
        widths = [(0, 0)] * 3 + [(0, columns - attention_bias.shape[-1])]
        attention_bias = xp.pad(attention_bias, widths)
    if attrs.get("smooth_softmax") == 1 and head_sink is None:
        head_sink = xp.zeros(attrs["num_heads"], np.float32)
    y = attend(
        xp, q, k, v, scale=attrs.get("scale", 0.0), bias=attention_bias, mask=mask,
        softcap=attrs.get("softcap", 0.0), sink=head_sink,
    )  # fmt: skip
    _write_with_cache(ctx, y, k, v)


@builtin("SparseAttention", domain=_CONTRIB, since=1, host_inputs=[5, 6, 7])
@quiet
def sparse_attention(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    query: Array, key: Array | None, value: Array | None, past_key: Array, past_value: Array,
    block_rows: Array, block_columns: Array, total_length: Array, totals: Array,
    cos: Array | None = None, sin: Array | None = None,
) -> None:  # fmt: skip
    """Attention with a cache; each head sees some of its blocks."""
    xp, attrs = ctx.xp, ctx.attrs
    cached = past_key, past_value, totals, int(total_length.reshape(()))
    q, k, v, start = _with_cache(ctx, (query, key, value), cached, (cos, sin, None))
    rows, columns = q.shape[2], k.shape[2]
    layouts, ends = len(block_rows), np.diff(block_rows, axis=1)
    seen = np.zeros((layouts, ends.shape[1], ends.shape[1]), bool)
    for layout, counts in enumerate(ends):
        number = block_rows[layout, 0], block_rows[layout, -1]
        places = block_columns[layout, slice(*number)]
        seen[layout, np.repeat(np.arange(len(counts)), counts), places] = True
    size = attrs["sparse_block_size"]
    row = (start.reshape(-1, 1) + xp.arange(rows)) // size
    blocks = constant(xp, np.tile(seen, (attrs["num_heads"] // layouts, 1, 1)))
    visible = blocks[:, row][:, :, :, xp.arange(columns) // size].transpose(1, 0, 2, 3)
    mask = visible & causal_mask(xp, rows, columns, start)
    y = attend(xp, q, k, v, scale=attrs.get("scale", 0.0), mask=mask)
    _write_with_cache(ctx, y, k, v)


def _with_cache(
    ctx: Context,
    given: tuple[Array, Array | None, Array | None],
    cached: tuple[Array | None, Array | None, Array, int],
    turns: tuple[Array | None, Array | None, Array | None],
) -> tuple[Array, Array, Array, Array]:
    """Return queries, and keys and values including the cache, by head.

    Parameters
    ----------
    ctx
        The node.
    given
        Queries, keys and values, or all of them as the first.
    cached
        Keys and values of the cache, the lengths of the sequences, and the longest of these.
    turns
        Cosines, sines and positions of the rotary embedding.

    Returns
    -------
    q, k, v
        Arrays by head.
    start
        Number of keys before the first query of each batch element.
    """
    xp, attrs = ctx.xp, ctx.attrs
    (query, key, value), (past_key, past_value, totals, total) = given, cached
    cos, sin, positions = turns
    heads, shared = attrs["num_heads"], attrs["kv_num_heads"]
    if (key is None) != (value is None):
        raise ValueError("the node has only one of key and value")
    if key is None:
        size = query.shape[2] // (heads + 2 * shared)
        query, key, value = xp.split(query, [heads * size, (heads + shared) * size], axis=2)
    q, k, v = split_heads(query, heads), split_heads(key, shared), split_heads(value, shared)
    batch, _, rows, _ = q.shape
    # In the first call, shorter sequences are padded at their ends.
    start = xp.zeros_like(totals) if rows == total else totals - rows
    if attrs.get("do_rotary", 0):
        if cos is None or sin is None:
            raise ValueError("do_rotary is set, but the node has no cos_cache and sin_cache")
        if positions is None or positions.size != batch * rows:
            positions = start[:, None] + xp.arange(rows)
        positions = positions.reshape(batch, rows)
        turn: dict[str, Any] = {"interleaved": bool(attrs.get("rotary_interleaved", 0)),
                                "size": 2 * cos.shape[1]}  # fmt: skip
        q, k = (rotate(xp, x, cos[positions], sin[positions], **turn) for x in (q, k))
    k = _extended(xp, past_key, k, start, total)
    return q, k, _extended(xp, past_value, v, start, total), start


def _write_with_cache(ctx: Context, y: Array, k: Array, v: Array) -> None:
    merged = merge_heads(y)
    ctx.out(merged.shape, index=0)[...] = merged
    write_optional(ctx, 1, k)
    write_optional(ctx, 2, v)


def _extended(xp: ArrayModule, past: Array | None, new: Array, start: Array, total: int) -> Array:
    """Return the cache, with new entries after the old ones of each batch element."""
    length = max(total, past.shape[2] if past is not None else 0)
    cache = xp.zeros((*new.shape[:2], length, new.shape[3]), new.dtype)
    if past is not None:
        cache[:, :, : past.shape[2]] = past
    places = start[:, None] + xp.arange(new.shape[2])
    cache[xp.arange(new.shape[0])[:, None], :, places] = new.transpose(0, 2, 1, 3)
    return cache


_SELF_ATTENTION: Limits = {
    "do_rotary is set": lambda node: _is_set(node, "do_rotary"),
    "past_present_share_buffer is set": lambda node: _is_set(node, "past_present_share_buffer"),
    "it has past_sequence_length": lambda node: node.has_input(6),
}


@builtin("Attention", domain=_CONTRIB, since=1, limits=_SELF_ATTENTION)
@quiet
def attention(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, weights: Array, bias: Array | None = None, mask_index: Array | None = None,
    past: Array | None = None, attention_bias: Array | None = None,
    *_: None,
) -> None:  # fmt: skip
    """Attention of a sequence to itself, the projections included."""
    xp, attrs = ctx.xp, ctx.attrs
    heads = attrs["num_heads"]
    sizes = attrs.get("qkv_hidden_sizes") or [weights.shape[1] // 3] * 3
    wide = products.matmul(x.astype(np.float32), weights.astype(np.float32))
    if bias is not None:
        wide += bias
    q, k, v = (
        split_heads(part, heads) for part in xp.split(wide, np.cumsum(sizes[:2]).tolist(), axis=2)
    )
    before = 0
    if past is not None:
        before = past.shape[3]
        k = xp.concatenate([past[0], k], axis=2)
        v = xp.concatenate([past[1], v], axis=2)
    rows, columns = q.shape[2], k.shape[2]
    added = attention_bias
    mask = _key_mask(xp, mask_index, x.shape[0], columns)
    if mask is not None:
        filter_value = np.float32(attrs.get("mask_filter_value", -10000.0))
        penalty = xp.where(mask, np.float32(0), filter_value)
        added = penalty if added is None else added + penalty
    causal = causal_mask(xp, rows, columns, before) if attrs.get("unidirectional") else None
    y = merge_heads(attend(xp, q, k, v, scale=attrs.get("scale", 0.0), bias=added, mask=causal))
    ctx.out(y.shape, index=0)[...] = y
    if ctx.num_outputs > 1:
        write_optional(ctx, 1, xp.stack([k, v]))
