"""Generations that a call continues whose KV cache is in new objects."""

import pytest

from epprof_nb.data.cache_uses import AmbiguousCacheError, CacheUse, continued


def used(*calls, at=0):
    """A generation with calls of (past, tokens), one at each time."""
    use = CacheUse()
    for i, (past, tokens) in enumerate(calls):
        use.called(past, tokens, begin=at + i)
    return use


@pytest.mark.parametrize(
    ("calls", "past", "tokens", "fits"),
    [
        ([(0, 9)], 9, 1, True),
        ([(0, 9), (9, 1)], 10, 1, True),
        ([(0, 9), (9, 4)], 11, 3, True),  # two proposals were taken back
        ([(0, 9), (9, 4)], 9, 3, False),
        ([(0, 30), (30, 1), (31, 1)], 20, 5, False),  # another prompt after a cached prefix
        ([(0, 30)], 20, 5, False),
        ([(0, 60), (60, 5)], 40, 5, False),
        ([(0, 9)], 4, 1, True),  # the window is shorter than the prompt
        ([(0, 9), (4, 1)], 4, 1, True),
        ([(0, 9), (9, 1), (10, 1)], 9, 1, False),  # a branch of a search
        ([(0, 9)], 10, 1, False),
        ([(0, 9)], 9, 30, False),  # the next turn of a chat
        ([(0, 9)], 0, 9, False),
    ],
)
def test_lengths_tell_what_a_call_continues(calls, past, tokens, fits):
    use = used(*calls)
    assert (continued([(use, past)], tokens) is use) == fits


def test_a_generation_that_has_ended_is_not_continued():
    older, newer = used((0, 9), (8, 1), (8, 1)), used((0, 9), at=5)
    assert continued([(newer, 8), (older, 8)], 1) is newer


def test_the_length_decides_between_generations_that_alternate():
    one, two = used((0, 9)), used((0, 5), at=1)
    assert continued([(two, 9), (one, 9)], 1) is one
    assert continued([(two, 5), (one, 5)], 1) is two


@pytest.mark.parametrize("more", [(), [(8, 1)]])
def test_windows_of_generations_that_may_alternate_are_ambiguous(more):
    one, two = used((0, 9), *more, at=0), used((0, 9), *more, at=0.5)
    with pytest.raises(AmbiguousCacheError):
        continued([(two, 8), (one, 8)], 1)
