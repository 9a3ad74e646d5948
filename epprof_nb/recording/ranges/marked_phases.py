"""`phase` marks the calls of a language model for ``Profile.by_phase``."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Literal

from epprof_nb.data.token_arguments import PHASES
from epprof_nb.recording.ranges.ranges import op

if TYPE_CHECKING:
    from epprof_nb import _native

_MOST = 2**31 - 1
"""Largest number: the product of two, the tokens of all sequences of a call, has 64 bits."""


def phase(
    name: Literal["prefill", "decode"],
    tokens: int,
    *,
    batch: int = 1,
    past_tokens: int | None = None,
    model: str = "model",
) -> _native.Op:
    """Mark a call of a language model, or several calls of one phase, for ``prof.by_phase()``.

    Needed only where the phases are not found: the model keeps its KV cache in itself, is compiled
    with the loop around it, or runs in a CUDA graph. Like `epprof_nb.op`, it is a context manager
    and a decorator, and opens a range with the name of the phase.

    Parameters
    ----------
    name
        ``"prefill"`` begins a generation; ``"decode"`` continues it.
    tokens
        Number of tokens of each sequence that the code in the range processes.
    batch
        Number of sequences.
    past_tokens
        Number of tokens of each sequence in the KV cache before the call; None for as many as the
        generation has processed. With a number above 0, a prefill continues its generation, and
        calls of generations that alternate on a thread belong to the right one.
    model
        Name of the model, if there are several, such as a draft model and the one that verifies.

    Returns
    -------
    range
        The range, which is open in ``with``.

    Raises
    ------
    ValueError
        If the phase is unknown, or a number is too small or above 2,147,483,647.
    TypeError
        If a number is not an integer. Tensors are refused, because reading one may wait for a
        device.

    Examples
    --------
    >>> import epprof_nb
    >>> with epprof_nb.profile() as prof:
    ...     with epprof_nb.phase("prefill", 5):
    ...         pass  # logits = model(prompt)
    ...     for _ in range(3):
    ...         with epprof_nb.phase("decode", 1):
    ...             pass  # logits = model(token)
    >>> prof.by_phase()[["phase", "calls", "tokens", "past_tokens"]].values.tolist()
    [['prefill', 1, 5, 0], ['decode', 3, 3, 5]]
    """
    if name not in PHASES:
        raise ValueError(f"unknown phase {name!r}; choose prefill or decode")
    numbers = {"tokens": _number("tokens", tokens, 1), "batch": _number("batch", batch, 1)}
    if past_tokens is not None:
        numbers["past_tokens"] = _number("past_tokens", past_tokens, 0)
    return op(name, phase=name, model=str(model), **numbers)


def _number(name: str, value: object, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(
            f"{name} must be an integer, not {type(value).__name__}; take it from a shape, such as "
            "input_ids.shape[1]"
        )
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    if number > _MOST:
        raise ValueError(f"{name} must be at most {_MOST:,}, which this number exceeds")
    return number
