"""Names and labels of the threads of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAIN = "main thread"
_NAMES = {"MainThread": _MAIN}


def thread_names(info: Mapping[str, Any]) -> dict[int, str]:
    """Map thread ids to names from a profile's info; unnamed threads are left out.

    Python's name of the first thread is spelled as words, like the name of a cell's thread.

    Examples
    --------
    >>> threads = {475: "pt_autograd_0", 7: "MainThread"}
    >>> thread_names({"threads": [{"thread_id": t, "name": name} for t, name in threads.items()]})
    {475: 'pt_autograd_0', 7: 'main thread'}
    """
    threads = info.get("threads")
    return {
        thread["thread_id"]: _NAMES.get(name := str(thread["name"]), name)
        for thread in (threads if isinstance(threads, list | tuple) else ())
        if isinstance(thread, dict)
        and isinstance(thread.get("thread_id"), int)
        and thread.get("name")
    }


def thread_label(names: Mapping[int, str], thread: int, *, is_main: bool) -> str:
    """Return the label of a thread; `is_main` says whether the cell runs on it.

    Examples
    --------
    >>> thread_label({7: "python"}, 7, is_main=True), thread_label({}, 8, is_main=False)
    ('main thread', 'thread 8')
    >>> thread_label({7: "reader", 8: "main thread"}, 7, is_main=True)
    'reader'
    """
    # In a window of a job, each process has a thread named "rank 3, main thread".
    if is_main and not any(name.endswith(_MAIN) for name in names.values()):
        return _MAIN
    return names.get(thread) or f"thread {thread}"
