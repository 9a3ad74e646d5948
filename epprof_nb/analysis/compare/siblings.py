"""Matching of the ops under one parent on the two sides of a comparison.

Equal ops are matched first: those that stand in the same order on both sides, then those that have
moved. An op that remains is renamed if an op of the same type stands in its place, between the same
neighbours. Where several do, the texts decide. They always do for statements: an edited one keeps
most of its words, and another one in its place is new.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Label: TypeAlias = tuple[str | None, str | None]
"""Name (None for a cell) and type of an op."""

_SIMILAR = 0.5
"""Least similarity of the texts of an op and its edited form, from 0 to 1."""
_MAX_LENGTH = 200
"""Characters of a text that are compared."""
_MAX_COMPARED = 2_500
"""Greatest number of pairs of texts under one parent that are compared."""
_MAX_EQUAL = 1_000_000
"""Greatest number of pairs of equal labels that are aligned by their order."""


def match_siblings(
    before: Sequence[Label], after: Sequence[Label]
) -> tuple[dict[int, int], dict[int, int]]:
    """Match the ops under one parent.

    Parameters
    ----------
    before, after
        Labels of the ops of each side, in order.

    Returns
    -------
    equal
        Positions in `before` to positions in `after` of the ops with equal labels.
    renamed
        The same of ops with another name. Exchanging `before` and `after` exchanges the positions.

    Examples
    --------
    >>> old = [("x = load()", "line"), ("y = f(x)", "line"), ("y.sum()", "line")]
    >>> new = [("x = load()", "line"), ("check(x)", "line"), ("y = g(x)", "line")]
    >>> match_siblings(old, new)
    ({0: 0}, {1: 2})
    """
    # The order of its arguments matters to difflib, so they have one that does not depend on the
    # direction of the comparison.
    if _sort_key(after) < _sort_key(before):
        equal, renamed = match_siblings(after, before)
        return {i: j for j, i in equal.items()}, {i: j for j, i in renamed.items()}
    aligned = _aligned(before, after)
    equal = aligned | _moved(before, after, aligned)
    return equal, dict(_renamed(before, after, aligned, equal))


def _sort_key(labels: Sequence[Label]) -> tuple[int, list[tuple[str, str]]]:
    return len(labels), [(name or "", kind or "") for name, kind in labels]


def _aligned(before: Sequence[Label], after: Sequence[Label]) -> dict[int, int]:
    """Match equal labels that stand in the same order on both sides."""
    counts = Counter(before), Counter(after)
    if sum(count * counts[1][label] for label, count in counts[0].items()) > _MAX_EQUAL:
        return {}
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {block.a + i: block.b + i for block in blocks for i in range(block.size)}


def _moved(
    before: Sequence[Label], after: Sequence[Label], aligned: dict[int, int]
) -> dict[int, int]:
    """Match the other equal labels, the first ones first."""
    taken = set(aligned.values())
    places: defaultdict[Label, list[int]] = defaultdict(list)
    for j in reversed(range(len(after))):
        if j not in taken:
            places[after[j]].append(j)
    left = (i for i in range(len(before)) if i not in aligned and places.get(before[i]))
    return {i: places[before[i]].pop() for i in left}


def _renamed(
    before: Sequence[Label],
    after: Sequence[Label],
    aligned: dict[int, int],
    equal: dict[int, int],
) -> Iterator[tuple[int, int]]:
    """Yield the positions of ops that have taken each other's place, between aligned siblings."""
    taken = set(equal.values())
    left = _MAX_COMPARED
    fixed = [(-1, -1), *sorted(aligned.items()), (len(before), len(after))]
    for (i, j), (next_i, next_j) in pairwise(fixed):
        olds = [at for at in range(i + 1, next_i) if at not in equal]
        news = [at for at in range(j + 1, next_j) if at not in taken]
        for kind in dict.fromkeys(before[at][1] for at in olds):
            one = [at for at in olds if before[at][1] == kind]
            other = [at for at in news if after[at][1] == kind]
            texts = [before[at][0] for at in one], [after[at][0] for at in other]
            compared = len(one) * len(other)
            has_time = compared <= left
            left -= compared if has_time else 0
            by_place = kind != "line" or not has_time
            for row, column in _edited(*texts, by_similarity=has_time, by_place=by_place):
                yield one[row], other[column]


def _edited(
    olds: Sequence[str | None],
    news: Sequence[str | None],
    *,
    by_similarity: bool,
    by_place: bool,
) -> Iterator[tuple[int, int]]:
    """Yield the positions of the texts that replace each other, in order.

    Similar texts do, with the greatest sum of similarities. By place, texts between these do
    whatever they are if there are as many on both sides.
    """
    similar: list[tuple[int, int]] = []
    if by_similarity:
        similar = _best_in_order(np.array([[_similarity(a, b) for b in news] for a in olds]))
    fixed = [(-1, -1), *similar, (len(olds), len(news))]
    for (i, j), (next_i, next_j) in pairwise(fixed):
        if by_place and next_i - i == next_j - j:
            yield from zip(range(i + 1, next_i), range(j + 1, next_j), strict=True)
    yield from similar


def _best_in_order(similarity: np.ndarray) -> list[tuple[int, int]]:
    """Return the rows and columns that are paired in order with the greatest sum.

    Parameters
    ----------
    similarity
        float64 array, shape ``(rows, columns)``.
    """
    if not similarity.size:
        return []
    gain = similarity - _SIMILAR
    rows, columns = gain.shape
    best = np.zeros((rows + 1, columns + 1))
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best[i, j] = max(best[i + 1, j], best[i, j + 1], best[i + 1, j + 1] + gain[i, j])
    pairs = []
    i = j = 0
    while i < rows and j < columns:
        if gain[i, j] >= 0 and best[i, j] == best[i + 1, j + 1] + gain[i, j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i, j] == best[i + 1, j]:
            i += 1
        else:
            j += 1
    return pairs


def _similarity(old: str | None, new: str | None) -> float:
    """Return how similar two texts are, from 0 to 1, by their words and by their characters.

    Short statements have most of their punctuation in common, and names of ops are often a single
    word: neither measure alone would do. A statement that was given more words, such as the
    arguments of a call, is similar to what it was however many they are.
    """
    one, other = (old or "")[:_MAX_LENGTH], (new or "")[:_MAX_LENGTH]
    words = re.findall(r"\w+", one), re.findall(r"\w+", other)
    least = _SIMILAR if _is_extended(*words) or _is_extended(*reversed(words)) else 0.0
    matchers = [SequenceMatcher(None, a, b, autojunk=False) for a, b in (words, (one, other))]
    if sum(matcher.quick_ratio() for matcher in matchers) / 2 < _SIMILAR:  # an upper bound
        return least
    return max(least, sum(matcher.ratio() for matcher in matchers) / 2)


def _is_extended(words: list[str], longer: list[str]) -> bool:
    """Whether all of some words are among others, in their order and from the first one on."""
    rest = iter(longer)
    return words[:1] == longer[:1] != [] and all(word in rest for word in words)
