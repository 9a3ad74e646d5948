"""Inputs of a language model that give the lengths of its query and of its KV cache.

ONNX does not standardize their names. The exporters of PyTorch, Optimum and onnxruntime-genai use
these names: ``input_ids``, ``attention_mask``, ``past_key_values.0.key`` and so on.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from epprof_nb.recording import token_log
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable

ATTRIBUTE = "_epprof_token_inputs"
"""Attribute of a session: its `TokenInputs`; None without a language model with a KV cache."""

_TOKENS = re.compile(r"(decoder_)?(input_ids|inputs?_embeds|tokens?|token_ids)")
_MASK = re.compile(r"(decoder_)?attention_mask")
_POSITIONS = re.compile(r"(decoder_)?position_ids")
_CACHE = re.compile(r"(past|cache|k_cache|v_cache|kv_cache)([._]|$)|past_key|past_value")
_OF_ENCODER = re.compile(r"(^|[._])(encoder|cross)([._]|$)")
_LENGTH = re.compile(r"past|total|cache|seq|len", re.IGNORECASE)
_MIN_CACHE_RANK = 3


class TokenInputs(NamedTuple):
    """Names of the inputs that give the lengths, and the growing axis of the KV cache."""

    tokens: str
    cache: tuple[str, ...]
    axis: int
    mask: str | None
    positions: str | None


def token_inputs(inputs: list[Any]) -> TokenInputs | None:
    """Return the inputs of a model that give the lengths of its query and of its KV cache.

    Parameters
    ----------
    inputs
        ``get_inputs()`` of a session: objects with ``name`` and ``shape``, whose dimensions are
        numbers, names or None.

    Returns
    -------
    inputs
        None if the model has no tokens or no KV cache among its inputs.

    Examples
    --------
    >>> from types import SimpleNamespace as Input
    >>> token_inputs([
    ...     Input(name="input_ids", shape=["batch", "sequence"]),
    ...     Input(name="past_key_values.0.key", shape=["batch", 8, "past_length", 64]),
    ... ]).axis
    2
    """
    named = [(str(given.name), list(given.shape)) for given in inputs]

    def first(pattern: re.Pattern[str]) -> str | None:
        return next((name for name, _ in named if pattern.fullmatch(name)), None)

    cache = [
        (name, shape)
        for name, shape in named
        if len(shape) >= _MIN_CACHE_RANK and _CACHE.search(name) and not _OF_ENCODER.search(name)
    ]
    tokens = first(_TOKENS)
    if tokens is None or not cache:
        return None
    shape = cache[0][1]
    named_axes = [
        axis for axis, size in enumerate(shape) if isinstance(size, str) and _LENGTH.search(size)
    ]
    axis = named_axes[0] if len(named_axes) == 1 else len(shape) - 2
    return TokenInputs(
        tokens, tuple(name for name, _ in cache), axis, first(_MASK), first(_POSITIONS)
    )


def of_session(session: Any) -> TokenInputs | None:  # noqa: ANN401
    """Return the inputs of a session, found at its first recorded run."""
    try:
        known: TokenInputs | None = getattr(session, ATTRIBUTE)
    except AttributeError:
        known = token_inputs(session.get_inputs()) if hasattr(session, "get_inputs") else None
        setattr(session, ATTRIBUTE, known)
    return known


def add_call(session: object, begin_ns: int, feed: object) -> None:
    """Add a run that has ended on this thread to the log of calls, if its lengths are known.

    Parameters
    ----------
    session
        The ``InferenceSession``.
    begin_ns
        When it was called (CLOCK_MONOTONIC).
    feed
        Its inputs by name, if they are known.
    """
    with suppress(*USER_ERRORS):  # the run has succeeded, whatever its inputs are
        inputs = of_session(session)
        if inputs is not None and isinstance(feed, dict):
            lengths = lengths_of(inputs, feed)
            if lengths is not None:
                token_log.add(token_log.ended(begin_ns, *lengths))


def lengths_of(inputs: TokenInputs, feed: dict[str, Any]) -> tuple[int, int, int, int] | None:
    """Return batch, tokens, cached tokens and size of the cache of a run.

    Parameters
    ----------
    inputs
        The inputs of the model that give the lengths.
    feed
        NumPy arrays, ``OrtValue`` objects or other objects with a shape, by name.

    Returns
    -------
    lengths
        None if an input is missing or has another rank.

    Notes
    -----
    A cache of a fixed size is longer than its contents. The attention mask covers the cached and
    the new tokens. If it also has the fixed size, the positions give the number of cached tokens.
    """
    tokens, cache = _shape(feed.get(inputs.tokens)), _shape(feed.get(inputs.cache[0]))
    if not tokens or cache is None or len(cache) <= inputs.axis:
        return None
    batch, query = (tokens[0], tokens[1]) if len(tokens) > 1 else (1, tokens[0])
    past = cache[inputs.axis]
    mask = _shape(feed.get(inputs.mask)) if inputs.mask else None
    positions = feed.get(inputs.positions) if inputs.positions else None
    if _are_numbers(positions) and past:
        past = min(past, max(int(positions[..., -1].max()) + 1 - query, 0))
    elif mask is not None and len(mask) > 1 and query <= mask[-1] < past + query:
        past = mask[-1] - query
    return batch, query, past, _bytes(feed.get(name) for name in inputs.cache)


def _are_numbers(positions: Any) -> TypeGuard[np.ndarray[Any, Any]]:  # noqa: ANN401
    if not isinstance(positions, np.ndarray) or not positions.ndim or not positions.size:
        return False
    return positions.dtype.kind in "iu"


def _shape(value: Any) -> tuple[int, ...] | None:  # noqa: ANN401
    shape = getattr(value, "shape", None)
    if callable(shape):  # an OrtValue
        shape = shape() if value.is_tensor() else None
    return None if shape is None else tuple(shape)


def _bytes(values: Iterable[Any]) -> int:
    total = 0
    for value in values:
        size = getattr(value, "nbytes", None)
        if size is None and hasattr(value, "tensor_size_in_bytes"):
            size = value.tensor_size_in_bytes()
        if size is None:
            return token_log.UNKNOWN
        total += int(size)
    return total
