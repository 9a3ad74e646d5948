"""Lives of memory: events that allocate at an address, each paired with its release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.stable_order import stable_order

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray

UNSEEN = -1
"""Row of an event that was before or is after those that are known."""


def address_lives(address: IntArray, is_begin: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the rows of the events with which each life begins and ends, or `UNSEEN`.

    Parameters
    ----------
    address
        Address of each event, in the order of time. It belongs to one life at a time.
    is_begin
        Whether the event begins a life; else it ends one.

    Examples
    --------
    >>> begin, end = address_lives(np.array([8, 16, 8, 24]), np.array([True, True, False, False]))
    >>> begin.tolist(), end.tolist()
    ([0, 1, -1], [2, -1, 3])
    """
    order = stable_order(address)
    n, address, is_begin = len(order), address[order], is_begin[order]
    follows = np.append(address[1:] == address[:-1], False)[:n]
    is_ended = is_begin & follows & ~np.append(is_begin[1:], True)[:n]
    ends_known = np.append(False, is_ended[:-1])[:n]
    first = np.flatnonzero(is_begin | ~ends_known)
    row, following = order[first], np.append(order, UNSEEN)[first + 1]
    begin = np.where(is_begin[first], row, UNSEEN)
    end = np.where(is_ended[first], following, np.where(is_begin[first], UNSEEN, row))
    return begin, end
