"""Scaled dot-product attention and rotary embedding for operators of both domains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernels.cuda import attention as cuda_attention
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.products import products

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule


def split_heads(x: Array, heads: int) -> Array:
    """Return (batch, heads, sequence, size) from (batch, sequence, heads * size)."""
    batch, sequence, width = x.shape
    return x.reshape(batch, sequence, heads, width // heads).transpose(0, 2, 1, 3)


def merge_heads(x: Array) -> Array:
    """Return (batch, sequence, heads * size) from (batch, heads, sequence, size)."""
    batch, heads, sequence, size = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, sequence, heads * size)


def causal_mask(xp: ArrayModule, rows: int, columns: int, offset: Array | int) -> Array:
    """Whether a row may attend to a column, which must not be later.

    Parameters
    ----------
    xp
        Array module.
    rows, columns
        Lengths of the sequences of queries and keys.
    offset
        Number of keys before the first query: one number, or one per batch element.

    Returns
    -------
    mask
        Booleans that broadcast with (batch, heads, rows, columns).
    """
    first = offset if isinstance(offset, int) else offset.reshape(-1, 1, 1, 1)
    return xp.arange(columns) <= xp.arange(rows).reshape(-1, 1) + first


def expect_same_batch(q: Array, k: Array, v: Array) -> None:
    """Raise ValueError if queries, keys and values are not of equally many sequences."""
    if not len(q) == len(k) == len(v):
        raise ValueError(f"batches of {len(q)} queries, {len(k)} keys and {len(v)} values differ")


@dataclass
class Stages:
    """Scores of an attention after each step, for outputs with the scores."""

    raw: Array = None
    capped: Array = None
    masked: Array = None
    probabilities: Array = None


def attend(
    xp: ArrayModule,
    q: Array, k: Array, v: Array,
    *,
    scale: float,
    bias: Array | None = None,
    mask: Array | None = None,
    softcap: float = 0.0,
    sink: Array | None = None,
    stages: Stages | None = None,
) -> Array:  # fmt: skip
    """Return the attention of queries to keys and values.

    Parameters
    ----------
    xp
        Array module.
    q
        Queries, (batch, heads, rows, size).
    k, v
        Keys and values, (batch, key heads, columns, size); several heads of queries share one.
    scale
        Factor of the scores; 0 for one over the root of the size.
    bias
        Numbers added to the scores, broadcast to (batch, heads, rows, columns).
    mask
        Booleans in the same shape: False excludes a column. A row without columns gives zeros.
    softcap
        Limit of the scores, by tanh; 0 for no limit.
    sink
        One score per head, which is part of the softmax but not of a column.
    stages
        Gets the scores after each step.
    """
    batch, heads, rows, size = q.shape
    shared, columns = k.shape[1:3]
    grouped_rows = heads // shared * rows  # an empty array cannot be reshaped with -1
    scale = scale or 1 / math.sqrt(size)
    wide = at_least_float32(q)
    grouped = (wide * wide.dtype.type(scale)).reshape(batch, shared, grouped_rows, size)
    keys = at_least_float32(k).transpose(0, 1, 3, 2)
    scores = products.matmul(grouped, keys).reshape(batch, heads, rows, columns)
    if xp is not np and stages is None and not softcap and scores.size:
        probabilities = _weights_on_device(xp, scores, bias, mask, sink)
    else:
        probabilities = _weights(xp, scores, bias, mask, sink, softcap, stages or Stages())
    values = at_least_float32(v)
    result = products.matmul(probabilities.reshape(batch, shared, grouped_rows, columns), values)
    return result.reshape(batch, heads, rows, v.shape[-1])


def _weights_on_device(
    xp: ArrayModule, scores: Array, bias: Array | None, mask: Array | None, sink: Array | None
) -> Array:
    bias = None if bias is None else at_least_float32(bias)
    sink = None if sink is None else sink.reshape(-1).astype(scores.dtype)
    if cuda_attention.write_weights(xp, scores, bias, mask, sink):
        return scores
    return _weights(xp, scores, bias, mask, sink, 0.0, Stages())


def _weights(  # noqa: PLR0917 - the inputs of the operator
    xp: ArrayModule,
    scores: Array,
    bias: Array | None, mask: Array | None, sink: Array | None,
    softcap: float,
    stages: Stages,
) -> Array:  # fmt: skip
    stages.raw = scores
    if softcap:
        scores = xp.tanh(scores / scores.dtype.type(softcap)) * scores.dtype.type(softcap)
    stages.capped = scores
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = xp.where(mask, scores, scores.dtype.type(-np.inf))
    stages.masked = scores
    probabilities = _softmax(xp, scores, sink)
    stages.probabilities = probabilities
    return probabilities


def _softmax(xp: ArrayModule, scores: Array, sink: Array | None) -> Array:
    if not scores.size:
        return scores
    largest = scores.max(axis=-1, keepdims=True)
    if sink is not None:
        sink = sink.reshape(-1, 1, 1).astype(scores.dtype)
        largest = xp.maximum(largest, sink)
    largest = xp.where(xp.isfinite(largest), largest, scores.dtype.type(0))
    y = scores - largest
    xp.exp(y, out=y)
    total = y.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + xp.exp(sink - largest)
    y /= xp.where(total == 0, scores.dtype.type(1), total)
    return y


def rotate(
    xp: ArrayModule,
    x: Array,
    cos: Array,
    sin: Array,
    *,
    interleaved: bool,
    size: int = 0,
) -> Array:
    """Return vectors with pairs of elements rotated by an angle per position.

    Parameters
    ----------
    xp
        Array module.
    x
        Vectors, (batch, heads, sequence, size).
    cos, sin
        (batch, sequence, half of the rotated size).
    interleaved
        Whether neighbors form a pair; otherwise the halves of the vector do.
    size
        Number of elements to rotate, from the start; 0 for all.
    """
    if cos.shape != sin.shape:
        raise ValueError(f"cosines of the shape {cos.shape} and sines of {sin.shape} do not fit")
    wide = at_least_float32(x)
    size = size or x.shape[-1]
    part = wide[..., :size]
    c, s = (at_least_float32(t)[:, None] for t in (cos, sin))
    a, b = (part[..., ::2], part[..., 1::2]) if interleaved else xp.split(part, 2, axis=-1)
    result = wide.copy()
    turned = result[..., :size]
    first = (
        (slice(0, None, 2), slice(1, None, 2))
        if interleaved
        else (slice(0, size // 2), slice(size // 2, size))
    )
    turned[..., first[0]] = a * c - b * s
    turned[..., first[1]] = b * c + a * s
    return result
