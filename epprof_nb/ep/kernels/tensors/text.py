"""Features of token sequences."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernel import Array, Attributes, Context, builtin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.ep.kernel_limits import Limits, StaticNode


def _grams(attrs: Attributes) -> Iterator[tuple[int, Array]]:
    """Yield each length of n-grams, and the n-grams of the pool with it."""
    pool = np.array(attrs["pool_int64s"], np.int64)
    starts = [*attrs["ngram_counts"], pool.size]
    for length, (start, end) in enumerate(pairwise(starts), 1):
        yield length, pool[start:end].reshape(-1, length)


_MODES = ("TF", "IDF", "TFIDF")


def _lengths_fit(node: StaticNode) -> bool:
    """Whether the lengths of n-grams are in order, and the pool has n-grams of each."""
    shortest: int = node.attrs["min_gram_length"]
    longest: int = node.attrs["max_gram_length"]
    return 0 < shortest <= longest <= len(node.attrs["ngram_counts"])


def _parts_fit(node: StaticNode) -> bool:
    """Whether each part of the pool has only n-grams of its length, without repeats."""
    pool, starts = node.attrs["pool_int64s"], node.attrs["ngram_counts"]
    for length, (start, end) in enumerate(pairwise([*starts, len(pool)]), 1):
        grams = [tuple(pool[at : at + length]) for at in range(start, end, length)]
        if not 0 <= start <= end <= len(pool) or (end - start) % length:
            return False
        if len(set(grams)) != len(grams):
            return False
    return True


def _number(node: StaticNode) -> int:
    """Return the number of n-grams in a pool with valid parts."""
    ends = [*node.attrs["ngram_counts"][1:], len(node.attrs["pool_int64s"])]
    parts = zip(node.attrs["ngram_counts"], ends, strict=True)
    return sum((end - start) // length for length, (start, end) in enumerate(parts, 1))


_POOL: Limits = {
    "it has no pool_int64s": lambda node: not node.attrs.get("pool_int64s"),
    "it has pool_strings": lambda node: "pool_strings" in node.attrs,
    f"mode is not one of {', '.join(_MODES)}": lambda node: node.attrs["mode"] not in _MODES,
    "max_skip_count is negative": lambda node: node.attrs["max_skip_count"] < 0,
    "min_gram_length, max_gram_length and ngram_counts do not fit": lambda node: (
        not _lengths_fit(node)
    ),
    "ngram_counts does not fit pool_int64s, or an n-gram repeats": lambda node: (
        not _parts_fit(node)
    ),
    "ngram_indexes does not have an entry per n-gram": lambda node: (
        len(node.attrs["ngram_indexes"]) != _number(node)
    ),
    "ngram_indexes has a negative entry": lambda node: min(node.attrs["ngram_indexes"]) < 0,
    "weights does not have an entry per n-gram": lambda node: (
        len(node.attrs.get("weights", node.attrs["ngram_indexes"])) != _number(node)
    ),
}


@builtin("TfIdfVectorizer", since=9, host_inputs=[0], limits=_POOL)
def tf_idf_vectorizer(ctx: Context, x: Array) -> None:
    """Number or weight of each n-gram of a pool in a sequence, tokens skipped or not."""
    attrs = ctx.attrs
    places = attrs["ngram_indexes"]
    rows = x.reshape(1, -1) if x.ndim <= 1 else x
    if x.ndim > 2 or not len(rows):
        raise ValueError(f"the shape {x.shape} is neither one row nor several")
    counts = np.zeros((rows.shape[0], max(places) + 1), np.int64)
    number = 0
    for length, grams in _grams(attrs):
        used = attrs["min_gram_length"] <= length <= attrs["max_gram_length"]
        # A single token has nothing to skip.
        steps = range(1, attrs["max_skip_count"] + 2) if length > 1 else (1,)
        for gram in grams:
            for step in steps if used else ():
                reach = (length - 1) * step + 1
                if rows.shape[1] < reach:
                    continue
                windows = np.lib.stride_tricks.sliding_window_view(rows, reach, axis=1)
                hits = (windows[:, :, ::step] == gram).all(axis=2).sum(axis=1)
                counts[:, places[number]] += hits
            number += 1
    found = counts.astype(np.float32)
    if attrs["mode"] != "TF":
        weights = np.zeros(counts.shape[1], np.float32)
        weights[list(places)] = attrs.get("weights", np.ones(len(places), np.float32))
        found = (np.minimum(found, 1) if attrs["mode"] == "IDF" else found) * weights
    ctx.out((*x.shape[:-1], counts.shape[1]))[...] = ctx.xp.asarray(
        found.reshape(*x.shape[:-1], -1)
    )


@builtin("Binarizer", domain="ai.onnx.ml", since=1)
def binarizer(ctx: Context, x: Array) -> None:
    """Whether each element is above a threshold, as 1 or 0."""
    ctx.out(x.shape)[...] = x > ctx.attrs["threshold"]
