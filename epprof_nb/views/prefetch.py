"""Prefetches parts of the view model of a large profile on background threads."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from epprof_nb.analysis.critical_path.chain import CriticalPath
from epprof_nb.analysis.frameworks.training_phases import has_modules
from epprof_nb.util.thread_pool import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.views.view_model import ViewModel

MIN_ACTIVITIES = 100_000
"""In smaller profiles, threads cost more than they save."""


@contextmanager
def prefetch(view_model: ViewModel, *parts: Callable[[], object]) -> Iterator[None]:
    """Compute parts of a large profile on threads while the body of the context runs.

    Reading a part that is still being computed blocks until it is ready; errors are raised in the
    caller.

    Parameters
    ----------
    view_model
        The profile.
    parts
        Functions that compute and cache the parts, in the order in which they will be needed.
    """
    if len(view_model.profile.tables["activities"]) < MIN_ACTIVITIES:
        yield
        return
    pool = ThreadPool(2)
    for part in parts:
        pool.submit(part)
    try:
        yield
    finally:
        pool.shutdown(cancel_futures=True)


def prefetch_for_page(view_model: ViewModel) -> AbstractContextManager[None]:
    """Prefetch the parts of a page."""

    # The findings take the longest, and half of that is the critical path.
    def path() -> int:
        return view_model.index.cached(CriticalPath, "launch").length_ns

    return prefetch(
        view_model,
        *((path, lambda: view_model.findings) if view_model.with_findings else ()),
        lambda: view_model.by_op,
        lambda: view_model.counters,
        lambda: view_model.bin_sums,
        *(partial(view_model.breakdown, by) for by in ("kernel", "stream", "line", "tree")),
        partial(_modules, view_model),
    )


def _modules(view_model: ViewModel) -> None:
    if has_modules(view_model.index):
        for by in ("module", "module_tree"):
            view_model.breakdown(by)
