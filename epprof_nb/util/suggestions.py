"""Known names that resemble a mistyped name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Ask whether the nearest `known` name was meant; None if no name is near.

    Examples
    --------
    >>> did_you_mean("softpluss", ["Softplus", "Softmax"])
    "did you mean 'Softplus'?"
    >>> did_you_mean("Whatever", ["Softplus", "Softmax"])
    """
    spelt = {candidate.lower(): candidate for candidate in sorted(set(known))}
    close = difflib.get_close_matches(name.lower(), spelt, n=1)
    return f"did you mean {spelt[close[0]]!r}?" if close else None
