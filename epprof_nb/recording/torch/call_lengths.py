"""Lengths of a call of a model: its tokens, and their position, from the arguments.

Values are read only in host memory.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import torch

from epprof_nb.recording.torch import kv_caches

_TOKENS = re.compile(r"(decoder_)?(input_ids|inputs?_embeds|token_ids|tokens?|ids|embeds?)")
_NO_TOKENS = re.compile(r"pos|mask|type|label|target|len|offset|index|encoder")
_POSITIONS = re.compile(
    r"((start|input|cache|cur|current|past)_?)?(pos|positions?|position_ids|offset)"
    r"|past_?len(gth)?|seqlen_offset"
)
_MASK = re.compile(r"(decoder_)?attention_mask|mask")
_EMBEDDING_RANK, _MASK_RANK = 3, 2


class Query(NamedTuple):
    """Number of sequences of a call, and processed tokens of each."""

    batch: int
    tokens: int
    is_flat: bool
    """Whether its input has one axis: sequences or tokens, which is unknown."""


def query_of(named: dict[Any, Any]) -> Query | None:
    """Return the tokens among the arguments of a call; None if there are none.

    They are integers or embeddings with the name of tokens, of a decoder if it has some. Without
    such names, they are the first integers with one or two axes.
    """
    found = None
    for name, value in named.items():
        if not isinstance(value, torch.Tensor) or not value.dim():
            continue
        text = name if isinstance(name, str) else ""
        is_named = _TOKENS.fullmatch(text) is not None
        if kv_caches.is_float(value):
            may_be = is_named and value.dim() == _EMBEDDING_RANK
        else:
            may_be = value.dtype != torch.bool and value.dim() < _EMBEDDING_RANK
        # A tensor must not be tested for its truth, which would wait for the device.
        if may_be and (is_named or (found is None and not _NO_TOKENS.search(text))):
            found = value
            if text.startswith("decoder_"):
                break
    if found is None:
        return None
    shape = found.shape
    if len(shape) == 1:
        return Query(1, int(shape[0]), is_flat=True)
    return Query(int(shape[0]), int(shape[1]), is_flat=False)


def first_position(named: dict[Any, Any], query: Query, first: torch.Tensor | None) -> int | None:
    """Return the position of the first token of a call, as its arguments say; None if unknown.

    Parameters
    ----------
    named
        The arguments.
    query
        The tokens of the call.
    first
        The first tensor of its cache. A mask of its length covers the buffer, not the tokens.
    """
    for name, value in named.items():
        if isinstance(name, str) and _POSITIONS.fullmatch(name):
            number = _position(value, query.tokens)
            if number is not None and number >= 0:
                return number
    for name, value in named.items():
        if not isinstance(name, str) or not _MASK.fullmatch(name):
            continue
        if not isinstance(value, torch.Tensor) or value.dim() != _MASK_RANK:
            continue
        length = int(value.shape[1])
        if first is None or length not in first.shape:
            past = length - query.tokens
            # A mask of one token says nothing on those before it.
            if past > 0 or (past == 0 and query.tokens > 1):
                return past
    return None


def _position(value: Any, tokens: int) -> int | None:  # noqa: ANN401
    """Return the first of some positions; None if it is not in host memory."""
    number = kv_caches.host_number(value)
    if number is not None or not isinstance(value, torch.Tensor):
        return number
    is_known = kv_caches.is_on_host(value) and 0 < value.dim() < _EMBEDDING_RANK
    if not is_known or value.shape[-1] != tokens or not value.numel():
        return None
    rows = kv_caches.host_values(value)
    # Padded sequences begin later.
    last: int = max(map(max, rows) if value.dim() > 1 else rows)
    return last + 1 - tokens
