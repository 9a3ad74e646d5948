"""What will be asked of a large profile is computed on threads, ahead of the question."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.views.view_model import ViewModel

MANY = 100_000
"""Activities from which threads save time."""


@contextmanager
def ahead(prepared: ViewModel, *parts: Callable[[], object]) -> Iterator[None]:
    """Compute parts of a large profile on threads, beside what is done meanwhile.

    Whatever is asked for before it is ready is waited for, and what fails fails for who asks.

    Parameters
    ----------
    prepared
        The profile.
    parts
        What will be asked for, in the order in which it is wanted.
    """
    if len(prepared.profile.tables["activities"]) < MANY:
        yield
        return
    pool = ThreadPoolExecutor(2)
    for part in parts:
        pool.submit(part)
    try:
        yield
    finally:
        pool.shutdown(cancel_futures=True)


def for_page(prepared: ViewModel) -> AbstractContextManager[None]:
    """Compute ahead what a page needs."""
    return ahead(
        prepared,
        lambda: prepared.by_op,
        lambda: prepared.findings,
        lambda: prepared.counters,
        *(partial(prepared.breakdown, by) for by in ("kernel", "stream", "line")),
        lambda: prepared.path_tree,
    )
