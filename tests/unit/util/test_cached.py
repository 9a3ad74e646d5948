"""Caches: several threads that need a value share the result of one computation."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import pytest

from epprof_nb.util.cached import KeyedCache, cached_property


class Asked:
    def __init__(self):
        self.times = 0
        self.together = Barrier(4)

    @cached_property
    def value(self):
        """The requested value."""
        self.times += 1
        sleep(0.02)
        return [self.other]

    @cached_property
    def other(self):
        return self.times


def test_concurrent_threads_get_the_same_value():
    asked = Asked()

    def ask():
        asked.together.wait()
        return asked.value

    with ThreadPoolExecutor(4) as pool:
        found = [asking.result() for asking in [pool.submit(ask) for _ in range(4)]]
    assert all(value is found[0] for value in found)
    assert (asked.times, found[0]) == (1, [1])
    assert Asked().value == [1]
    assert Asked.value.__doc__ == "The requested value."


def test_failed_computation_is_repeated():
    class Fails:
        tries = 0

        @cached_property
        def value(self):
            self.tries += 1
            if self.tries == 1:
                raise ValueError("not yet")
            return self.tries

    fails = Fails()
    with pytest.raises(ValueError, match="not yet"):
        print(fails.value)
    assert fails.value == 2


def test_each_key_is_computed_by_one_thread():
    made = []

    def make(key):
        made.append(key)
        sleep(0.02)
        return [key]

    kept = KeyedCache(make)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(kept.__getitem__, [1, 1, 2, 1]))
    assert sorted(made) == [1, 2]
    assert [one is kept[key] for one, key in zip(found, [1, 1, 2, 1], strict=True)] == [True] * 4
