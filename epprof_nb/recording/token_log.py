"""Calls of language models in the current process, with the tokens that each processed."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from typing import NamedTuple

UNKNOWN = -1
_MAX_CALLS = 1_000_000


class TokenCall(NamedTuple):
    """A call of a language model.

    Attributes
    ----------
    thread_id, begin_ns, end_ns
        Thread and times of the call (CLOCK_MONOTONIC, nanoseconds).
    batch
        Number of sequences; `UNKNOWN` if unknown.
    tokens
        Number of processed tokens per sequence: the length of the query.
    past
        Number of tokens per sequence that were in the KV cache; `UNKNOWN` if unknown.
    cache_bytes
        Size of the KV cache in bytes; `UNKNOWN` if unknown.
    turn
        Number of the generation from `new_turn`, or of the KV cache if `decode` is unknown;
        `UNKNOWN` if only the lengths distinguish generations.
    decode
        1 for a decode step, 0 for the prefill; `UNKNOWN` if only the lengths show it.
    """

    thread_id: int
    begin_ns: int
    end_ns: int
    batch: int
    tokens: int
    past: int
    cache_bytes: int
    turn: int
    decode: int


now = time.monotonic_ns
_turns = itertools.count()
_calls: deque[TokenCall] = deque(maxlen=_MAX_CALLS)


def new_turn() -> int:
    """Return a number for a new generation or KV cache."""
    return next(_turns)


def ended(
    begin_ns: int,
    batch: int,
    tokens: int,
    past: int,
    cache_bytes: int = UNKNOWN,
    *,
    turn: int = UNKNOWN,
    decode: int = UNKNOWN,
) -> TokenCall:
    """Return a call that has ended on this thread; see `TokenCall`."""
    thread = threading.get_native_id()
    return TokenCall(thread, begin_ns, now(), batch, tokens, past, cache_bytes, turn, decode)


def add(call: TokenCall) -> None:
    """Add a call."""
    _calls.append(call)


def clear() -> None:
    """Discard the calls of earlier recordings."""
    _calls.clear()


def calls() -> list[TokenCall]:
    """Return the calls since `clear`, the oldest first."""
    return list(_calls)
