"""The line of a function with most of its time, or else the loop with most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.analysis.base.between_lines import Loop, begins_function, loop_around

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAIN = 0.5
"""Minimum part of a function's time for one of its lines to be named, not the loop around it."""


class BusiestLine(NamedTuple):
    """The line to change, from 1, and the innermost loop around the line with most time."""

    line: int
    loop: Loop | None


def busiest_line(text: str, time: Mapping[int, float]) -> BusiestLine | None:
    r"""Return the line with most of a function's time; if no line has, the loop with most of it.

    Parameters
    ----------
    text
        Source of the file or cell.
    time
        Time in each line of the function, in any unit. In the line of the ``def``, the function
        is being called, which does not count.

    Returns
    -------
    busiest
        None if all time is in the line of the ``def``.

    Examples
    --------
    >>> source = "def f(rows):\n    for r in rows:\n        a(r)\n        b(r)\n        c(r)\n"
    >>> busiest_line(source, {1: 9.0, 3: 1.0, 4: 3.0}).line
    4
    >>> busiest_line(source, {3: 1.0, 4: 1.2, 5: 1.0}).line
    2
    >>> print(busiest_line(source, {1: 9.0}))
    None
    """
    inside = {line: part for line, part in time.items() if not begins_function(text, line)}
    if not inside:
        return None
    line, least = max(inside, key=lambda one: inside[one]), _MAIN * sum(inside.values())
    loop = loop_around(text, line)
    if inside[line] < least and loop is not None:
        in_loop = [part for one, part in inside.items() if loop_around(text, one) == loop]
        if sum(in_loop) >= least:
            line = loop.line
    return BusiestLine(line, loop)
