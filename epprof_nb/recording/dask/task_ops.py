"""Ops of Dask's tasks, and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.util.format import elide

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_NAME, _MAX_KEY = 200, 1_000


def task_op(split: Callable[[Any], str], key: Any) -> _native.Op:  # noqa: ANN401
    """Return the op of a task: named by the prefix of its key, which users choose.

    `split` returns the prefix, as ``dask.utils.key_split`` does.
    """
    text = key if type(key) is str else repr(key)
    return _native.task(
        elide(str(split(key)), _MAX_NAME, tail=0), key=elide(text, _MAX_KEY, tail=0)
    )
