"""Designs of experiments: which ops are delayed in which repeat, and how many repeats it takes.

A design has two levels per factor, with and without the delay. Repeats come in pairs, in which
each factor has one level and then the other, so that a drift of the machine cancels. The levels of
any two factors are orthogonal over the pairs, so that each slope is measured as if the other
factors were not there.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.core.least_repeats import MIN_OF_EXPERIMENT

Levels = npt.NDArray[np.int8]

BASE_REPEATS = 10
"""Repeats with delays of length zero, which show how much repeats scatter."""
MAX_FACTORS = 6
"""Maximum number of factors of a round."""
MAX_DELAYED = 0.1
"""Maximum of all delays of a repeat, as a share of its wall time."""
BLOCK = 8
"""The number of repeats of a round is a multiple of this."""
_REPEATS_PER_FACTOR = 6
"""With fewer repeats of a round per factor, intervals are much wider than `half_width`."""
_MAX_FIRST = 0.25
"""Largest difference of how often a factor's two levels come first, as a share of the pairs."""
MAX_EXECUTIONS = 20
"""Maximum number of delayed executions of an op in a repeat."""
MIN_DELAY_NS = 10_000
"""Least length of a delay: launching it takes 2 to 5 us."""
WANTED_WIDTH, MAX_WIDTH = 0.25, 0.5
"""Half-widths of intervals: the wanted one, and the largest that says anything."""
_WIDTH = 4.05
"""Half-width of a 95 % interval of one repeat, in units of scatter / delay."""
_FEW = 11.3
"""Number of repeats at which intervals are twice as wide, relative to the root, as with many."""


class Plan(NamedTuple):
    """How a number of repeats is used.

    Attributes
    ----------
    rounds
        Number of rounds; 0 if the repeats are too few for anything.
    factors
        Number of factors of each round.
    repeats
        Number of repeats of each round.
    half_width
        Expected half-width of the interval of a slope.
    """

    rounds: int
    factors: int
    repeats: int
    half_width: float


def half_width(repeats: int, scatter: float, delay: float) -> float:
    """Return the expected half-width of the 95 % interval of a slope.

    Parameters
    ----------
    repeats
        Number of repeats.
    scatter
        Standard deviation of the wall time of a repeat, as a share of the wall time.
    delay
        Delay of the factor, likewise.

    Examples
    --------
    >>> round(half_width(40, 0.01, 0.03), 2)
    0.23
    """
    few = 1 + (_FEW / repeats) ** 2
    return few * _WIDTH * scatter / (delay * math.sqrt(repeats))


def repeats_for(width: float, scatter: float, delay: float) -> int:
    """Return how many repeats it takes to measure a slope to ± `width`.

    Examples
    --------
    >>> repeats_for(0.2, 0.01, 0.03), repeats_for(0.2, 0.05, 0.05)
    (56, 416)
    """
    least = (_WIDTH * scatter / (delay * width)) ** 2
    repeats = max(MIN_OF_EXPERIMENT, BLOCK * math.ceil(least / BLOCK))
    while half_width(repeats, scatter, delay) > width:
        repeats += BLOCK
    return repeats


def delay_of_factor(factors: int) -> float:
    """Return the delay of each factor of a round, as a share of the wall time of a repeat.

    Examples
    --------
    >>> delay_of_factor(4)
    0.025
    """
    return MAX_DELAYED / factors


def plan_rounds(repeats: int, candidates: int, scatter: float, largest: int) -> Plan:
    """Return the rounds that measure as many of `candidates` factors as `repeats` allow.

    Fewer factors of a round have longer delays each, and so narrower intervals.

    Parameters
    ----------
    repeats
        Number of repeats that there are.
    candidates
        Number of factors that are worth measuring.
    scatter
        Standard deviation of the wall time of a repeat, as a share of the wall time.
    largest
        Maximum number of factors of a round.
    """
    best = Plan(0, 0, 0, math.inf)
    for width in (WANTED_WIDTH, MAX_WIDTH):
        for count in range(1, max(repeats // MIN_OF_EXPERIMENT, 1) + 1):
            each = max(repeats // count // BLOCK * BLOCK, MIN_OF_EXPERIMENT)
            if count * each > max(repeats, MIN_OF_EXPERIMENT):
                break
            factors = min(largest, candidates, MAX_FACTORS, each // _REPEATS_PER_FACTOR)
            while factors and half_width(each, scatter, delay_of_factor(factors)) > width:
                factors -= 1
            used = min(count, math.ceil(candidates / factors)) if factors else 0
            if used == count and count * factors > best.rounds * best.factors:
                delay = delay_of_factor(factors)
                best = Plan(count, factors, each, half_width(each, scatter, delay))
            if best.rounds * best.factors >= candidates:
                break
        if best.rounds:
            break
    return best


def executions_to_delay(count: int, total_ns: float) -> int:
    """Return in how many of an op's executions to insert a delay of `total_ns` in all.

    Examples
    --------
    >>> executions_to_delay(1000, 1e6), executions_to_delay(3, 1e6), executions_to_delay(3, 25_000)
    (20, 3, 2)
    """
    return max(min(count, MAX_EXECUTIONS, int(total_ns // MIN_DELAY_NS)), 1)


def fold_over(factors: int, repeats: int, random: np.random.Generator) -> Levels:
    """Return the levels of the factors in each repeat.

    Parameters
    ----------
    factors
        Number of factors, at most `MAX_FACTORS`.
    repeats
        Number of repeats, a multiple of `BLOCK`, at least `MIN_OF_EXPERIMENT`.
    random
        Draws the order of the pairs, of each pair, and the signs of the factors.

    Returns
    -------
    levels
        Array of repeats x factors: 1 with the delay, -1 without. Row ``2 i + 1`` is the opposite of
        row ``2 i``.

    Examples
    --------
    >>> levels = fold_over(3, 40, np.random.default_rng(0)).astype(int)
    >>> bool((levels[::2] == -levels[1::2]).all()), (levels[::2].T @ levels[::2]).tolist()
    (True, [[20, 0, 0], [0, 20, 0], [0, 0, 20]])
    """
    if repeats % BLOCK or repeats < MIN_OF_EXPERIMENT:
        raise ValueError(f"a round has {MIN_OF_EXPERIMENT} repeats or a multiple of {BLOCK} more")
    pairs = repeats // 2
    # 8 a + 12 b pairs: any multiple of 4 from 8 on.
    sizes = [8] * (pairs // 8) if pairs % 8 == 0 else [8] * (pairs // 8 - 1) + [12]
    blocks = []
    for size in sizes:
        columns = random.permutation(size - 1)[:factors] + 1  # the first column is constant
        signs = random.choice([-1, 1], factors)
        blocks.append(_hadamard(size)[:, columns][random.permutation(size)] * signs)
    drawn = np.concatenate(blocks)[random.permutation(pairs)]
    while True:  # draw which of a pair comes first: a level that nearly always does is a drift
        first = drawn * random.choice([-1, 1], (pairs, 1))
        if (np.abs(first.sum(axis=0)) <= _MAX_FIRST * pairs).all():
            break
    levels = np.empty((repeats, factors), np.int8)
    levels[::2], levels[1::2] = first, -first
    return levels


@cache
def _hadamard(size: int) -> npt.NDArray[np.int64]:
    """Return a matrix of 1 and -1 with orthogonal columns, the first of which is constant."""
    if size == 8:
        two = np.array([[1, 1], [1, -1]])
        return np.kron(np.kron(two, two), two)
    # Paley's construction: residues modulo a prime.
    prime = size - 1
    squares = {i * i % prime for i in range(1, prime)}
    residue = [0, *(1 if i in squares else -1 for i in range(1, prime))]
    inner = np.array([[residue[(j - i) % prime] for j in range(prime)] for i in range(prime)])
    matrix = np.ones((size, size), np.int64)
    matrix[1:, 1:] = inner - np.eye(prime, dtype=np.int64)
    return matrix
