"""The tables of a page are computed on threads while its picture is drawn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.views.prepared import Prepared

MANY = 100_000
"""Activities from which threads save time."""


@contextmanager
def ahead(prepared: Prepared) -> Iterator[None]:
    """Compute what a page needs of a large profile, beside what is done meanwhile.

    Whatever is asked for before it is ready is waited for, and what fails fails for who asks.
    """
    if len(prepared.profile.tables["activities"]) < MANY:
        yield
        return
    pool = ThreadPoolExecutor(2)
    # In the order in which they are wanted.
    pool.submit(lambda: prepared.by_op)
    pool.submit(lambda: prepared.findings)
    pool.submit(lambda: prepared.counters)
    for by in ("kernel", "stream", "line"):
        pool.submit(prepared.breakdown, by)
    pool.submit(lambda: prepared.lines)
    pool.submit(lambda: prepared.paths)
    try:
        yield
    finally:
        pool.shutdown(cancel_futures=True)
