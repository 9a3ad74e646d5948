"""Generations that a call of a language model may continue, if its KV cache is in new objects.

A loop may reorder the sequences of a cache (beam search), cut its oldest tokens (sliding window) or
take back proposals of a draft model. Then only lengths show which calls belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from epprof_nb.data.token_arguments import MAX_DRAFT

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 16
"""Maximum number of generations that are considered, the latest ones."""


@dataclass(slots=True, eq=False)
class CacheUse:
    """The calls so far with one cache, of one model on one thread.

    Attributes
    ----------
    held
        Number of tokens of a sequence that the cache holds; negative if unknown.
    past, tokens
        Cached and processed tokens of the last call.
    decoded
        Whether a call has processed a single token since the cache was empty.
    first, last
        When the first and the last call began, in any unit.
    """

    held: int = 0
    past: int = 0
    tokens: int = 0
    decoded: bool = False
    first: int = 0
    last: int = 0

    def called(self, past: int, tokens: int, begin: int) -> None:
        """Take a call into account."""
        if not self.tokens:
            self.first = begin
        self.held = past if past < 0 else past + tokens
        self.decoded = past != 0 and (self.decoded or tokens == 1)
        self.past, self.tokens, self.last = past, tokens, begin


_Use = TypeVar("_Use", bound=CacheUse)


class AmbiguousCacheError(Exception):
    """A call may continue several generations."""


def continued(uses: Iterable[tuple[_Use, int]], tokens: int) -> _Use | None:
    """Return the generation that a call continues; None if it continues none.

    Parameters
    ----------
    uses
        Generations of the same model and thread, the latest first, each with the number of tokens
        that the call's cache holds if it continues this one.
    tokens
        Number of tokens that the call processes.

    Raises
    ------
    AmbiguousCacheError
        If several generations fit, and their calls may alternate.

    Examples
    --------
    >>> window = CacheUse()
    >>> window.called(0, 20, begin=1)
    >>> continued([(window, 16)], 1) is window  # only the latest 16 tokens are kept
    True
    """
    fitting = [(use, past) for use, past in uses if _fits(use, past, tokens)]
    for use, past in fitting:
        if past == use.held:
            return use
    if not fitting:
        return None
    (latest, _), *others = fitting
    if any(other.last > latest.first or not other.decoded for other, _ in others):
        raise AmbiguousCacheError
    return latest


def _fits(use: CacheUse, past: int, tokens: int) -> bool:
    cut = use.held - past
    if cut < 0 or past <= 0 or tokens > MAX_DRAFT:
        return False
    if tokens > 1:
        # Of several proposals, the first token is right; a prompt has none.
        return cut == 0 or (use.past > 0 and cut < use.tokens <= MAX_DRAFT)
    # After fewer tokens than in the last call, a single one belongs to a branch of a search.
    return cut == 0 or not use.decoded or (past == use.past and use.tokens == 1)
