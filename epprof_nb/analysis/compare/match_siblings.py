"""Matching of the ops under one parent on the two sides of a comparison.

Equal ops are matched first: ops in the same order on both sides, then ops that moved. A remaining
op counts as renamed if an op of the same type is in its place, between the same neighbours. If
there are several, the texts decide. For statements, the texts always decide: an edited statement
keeps most of its words, otherwise it is new.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from epprof_nb.analysis.compare.match_effort import Effort

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Label: TypeAlias = tuple[str | None, str | None]
"""Name (None for a cell) and type of an op."""

_SIMILAR = 0.5
"""Minimum similarity of the texts of an op and its edited form, from 0 to 1."""
_MAX_LENGTH = 200
"""Number of compared characters of a text."""
_MAX_COMPARED = 2_500
"""Maximum number of compared pairs of texts under one parent."""
_ALIGNED_UNITS = 20_000_000
"""Maximum work of a comparison to align equal labels by order, in units of up to 0.1 us."""
_TEXT_UNITS = 20_000_000
"""Maximum work of a comparison to compare texts, in units of up to 0.1 us."""
_TEXT_COST = 20
"""Characters added to the length of each text, for the fixed cost of a comparison."""


class Matching:
    """Matching of the ops under each of many parents, with bounded work for all of them."""

    def __init__(self) -> None:
        self._to_align, self._to_compare = Effort(_ALIGNED_UNITS), Effort(_TEXT_UNITS)

    def match(
        self, siblings: Sequence[tuple[Sequence[Label], Sequence[Label]]]
    ) -> list[tuple[dict[int, int], dict[int, int]]]:
        """Match the ops under each of some parents.

        If too little work is left, equal ops are aligned only at the start and the end, and texts
        are not compared.

        Parameters
        ----------
        siblings
            Labels of the ops under each parent on both sides, in order.

        Returns
        -------
        matched
            For each parent, positions before to positions after of the ops with equal labels, and
            the same for ops with another name. Exchanging the sides exchanges the positions.

        Examples
        --------
        >>> old = [("x = load()", "line"), ("y = f(x)", "line"), ("y.sum()", "line")]
        >>> new = [("x = load()", "line"), ("check(x)", "line"), ("y = g(x)", "line")]
        >>> Matching().match([(old, new)])
        [({0: 0}, {1: 2})]
        """
        aligns = self._to_align.affords([_cost_to_align(*both) for both in siblings])
        compares = self._to_compare.affords([_cost_to_compare(*both) for both in siblings])
        return [
            _matched(*both, aligns=can_align, compares=can_compare)
            for both, can_align, can_compare in zip(siblings, aligns, compares, strict=True)
        ]


def _matched(
    before: Sequence[Label], after: Sequence[Label], *, aligns: bool, compares: bool
) -> tuple[dict[int, int], dict[int, int]]:
    # The result of difflib depends on the order of its arguments. This order does not depend on the
    # direction of the comparison.
    if _sort_key(after) < _sort_key(before):
        equal, renamed = _matched(after, before, aligns=aligns, compares=compares)
        return {i: j for j, i in equal.items()}, {i: j for j, i in renamed.items()}
    aligned = _aligned(before, after) if aligns else _ends(before, after)
    equal = aligned | _moved(before, after, aligned)
    return equal, dict(_renamed(before, after, aligned, equal, _MAX_COMPARED if compares else 0))


def _cost_to_align(before: Sequence[Label], after: Sequence[Label]) -> int:
    """Return a bound of the work of difflib, which searches the remaining labels for each block."""
    if before == after:
        return 0
    counts = Counter(before), Counter(after)
    equal = sum(count * counts[1][label] for label, count in counts[0].items())
    matched = sum((counts[0] & counts[1]).values())
    return (equal + len(before) + len(after)) * min(matched, len(before), len(after))


def _cost_to_compare(before: Sequence[Label], after: Sequence[Label]) -> int:
    """Return a bound of the work to compare the texts of the ops without an equal one."""
    longest, lengths = 1, []
    for labels in (Counter(before) - Counter(after), Counter(after) - Counter(before)):
        costs = {label: _TEXT_COST + min(len(label[0] or ""), _MAX_LENGTH) for label in labels}
        longest *= max(costs.values(), default=0)
        of_kind: Counter[str | None] = Counter()
        for label, count in labels.items():
            of_kind[label[1]] += count * costs[label]
        lengths.append(of_kind)
    of_all = sum(length * lengths[1][kind] for kind, length in lengths[0].items())
    return min(of_all, _MAX_COMPARED * longest)


def _sort_key(labels: Sequence[Label]) -> tuple[int, list[tuple[str, str]]]:
    return len(labels), [(name or "", kind or "") for name, kind in labels]


def _aligned(before: Sequence[Label], after: Sequence[Label]) -> dict[int, int]:
    """Match equal labels that are in the same order on both sides."""
    if before == after:
        return {i: i for i in range(len(before))}
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {block.a + i: block.b + i for block in blocks for i in range(block.size)}


def _ends(before: Sequence[Label], after: Sequence[Label]) -> dict[int, int]:
    """Match equal labels at the start and at the end of both sides."""
    shorter = min(len(before), len(after))
    start = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    end = next(
        (i for i in range(shorter - start) if before[-1 - i] != after[-1 - i]), shorter - start
    )
    last = [(len(before) - i, len(after) - i) for i in range(1, end + 1)]
    return {i: i for i in range(start)} | dict(last)


def _moved(
    before: Sequence[Label], after: Sequence[Label], aligned: dict[int, int]
) -> dict[int, int]:
    """Match the other equal labels in their order."""
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
    left: int,
) -> Iterator[tuple[int, int]]:
    """Yield the positions of ops that replace each other between aligned siblings.

    At most `left` pairs of texts are compared.
    """
    taken = set(equal.values())
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

    `by_similarity` pairs texts with the maximum sum of similarities. `by_place` pairs any texts
    between these if both sides have equally many.
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
    """Return the rows and columns of the ordered pairing with the maximum sum.

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

    Short statements share most of their punctuation, and names of ops are often a single word, so
    neither measure alone is enough. A statement with added words, such as arguments of a call, is
    similar to the original, however many words were added.
    """
    one, other = (old or "")[:_MAX_LENGTH], (new or "")[:_MAX_LENGTH]
    words = re.findall(r"\w+", one), re.findall(r"\w+", other)
    least = _SIMILAR if _is_extended(*words) or _is_extended(*reversed(words)) else 0.0
    matchers = [SequenceMatcher(None, a, b, autojunk=False) for a, b in (words, (one, other))]
    if sum(matcher.quick_ratio() for matcher in matchers) / 2 < _SIMILAR:  # an upper bound
        return least
    return max(least, sum(matcher.ratio() for matcher in matchers) / 2)


def _is_extended(words: list[str], longer: list[str]) -> bool:
    """Return whether `longer` begins with the first of `words` and contains all in order."""
    rest = iter(longer)
    return words[:1] == longer[:1] != [] and all(word in rest for word in words)
