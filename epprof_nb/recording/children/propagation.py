"""Propagation of an order to the children: by environment, `multiprocessing` and forks."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from epprof_nb.recording.children.forks import forks
from epprof_nb.recording.children.order_to_children import VARIABLE
from epprof_nb.recording.children.replaced_environments import started
from epprof_nb.util.after_import import after_import, cancel

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY = "epprof_children"
_REPLACED = "get_preparation_data"
_given: list[str] = []
"""The path of the order that was given to children; empty for none."""


def give_order(path: str | os.PathLike[str], *, in_fork: Callable[[str], None]) -> None:
    """Give an order to the children that this process starts from now on.

    Other Pythons get it by an environment variable, children of `multiprocessing` also in its
    preparation data, and forked children by the call of a function.

    Parameters
    ----------
    path
        File of the order.
    in_fork
        Function to call in forked children with the path. It must not raise.
    """
    text = os.path.abspath(path)  # noqa: PTH100 - the script may change the working directory
    _given[:] = [text]
    os.environ[VARIABLE] = text
    forks.call(lambda: in_fork(text))
    started.watch(text)
    after_import("multiprocessing.spawn", _extend_preparation)


def is_order_given() -> bool:
    """Whether the children that this process starts get an order."""
    return bool(_given)


def withdraw_order() -> None:
    """Undo `give_order`, for children that start from now on."""
    if _given and os.environ.get(VARIABLE) == _given[0]:
        del os.environ[VARIABLE]
    _given.clear()
    forks.call(None)
    started.stop()
    cancel("multiprocessing.spawn", _extend_preparation)
    if (spawn := sys.modules.get("multiprocessing.spawn")) is not None:
        replaced: Any = getattr(spawn, _REPLACED, None)
        if getattr(replaced, "__module__", None) == __name__:
            setattr(spawn, _REPLACED, replaced.__wrapped__)


def _extend_preparation() -> None:
    """Add the order to the data that `multiprocessing` sends to the processes that it starts."""
    from multiprocessing import spawn

    original = spawn.get_preparation_data
    if getattr(original, "__module__", None) == __name__:
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = original(name)
        # Another interpreter may lack the module of the class.
        if _given and os.fsdecode(spawn.get_executable() or "") == sys.executable:
            from _epprof_children import Stowaway

            data[_KEY] = Stowaway(_given[0], sys.path[0] if sys.path else None)
        return data

    get_preparation_data.__wrapped__ = original  # type: ignore[attr-defined]
    setattr(spawn, _REPLACED, get_preparation_data)
