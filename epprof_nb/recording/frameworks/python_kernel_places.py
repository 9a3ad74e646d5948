"""Files and lines in which kernels are defined, by the name of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def unambiguous(places: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, Any]]:
    """Return the places of the names that have exactly one.

    Parameters
    ----------
    places
        Name, file and line of kernels.

    Returns
    -------
    places
        Dicts with ``file`` and ``line``, by name.

    Examples
    --------
    >>> unambiguous([("add", "a.py", 3), ("mul", "a.py", 9), ("mul", "b.py", 2)])
    {'add': {'file': 'a.py', 'line': 3}}
    """
    found: dict[str, set[tuple[str, int]]] = {}
    for name, file, line in places:
        found.setdefault(name, set()).add((file, line))
    return {
        name: {"file": file, "line": line}
        for name, distinct in found.items()
        if len(distinct) == 1
        for file, line in distinct
    }
