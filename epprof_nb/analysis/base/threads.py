"""The threads of a profile, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def thread_names(info: Mapping[str, Any]) -> dict[int, str]:
    """Map thread ids to names from a profile's info; unnamed threads are left out.

    Examples
    --------
    >>> thread_names({"threads": [{"thread_id": 475, "name": "pt_autograd_0"}]})
    {475: 'pt_autograd_0'}
    """
    threads = info.get("threads")
    return {
        thread["thread_id"]: str(thread["name"])
        for thread in (threads if isinstance(threads, list | tuple) else ())
        if isinstance(thread, dict)
        and isinstance(thread.get("thread_id"), int)
        and thread.get("name")
    }
