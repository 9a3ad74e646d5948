"""Arrays of the host device that are in use, with the lines that allocated them in profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.host.memory import blocks_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.recording.memory.earlier_blocks import Place


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of the host device at the end of a session.

    Attributes
    ----------
    address, nbytes
        The arrays in use, without empty ones.
    is_older
        Whether each was in use at the begin, bool.
    earlier
        Cells and lines of arrays that earlier profiles saw, by their addresses at the begin.
    keep_places
        Gets the lines of the arrays in use at the end, for later profiles.
    """

    address: IntArray
    nbytes: IntArray
    is_older: BoolArray
    earlier: Mapping[int, Place]
    keep_places: Callable[[dict[int, Place]], None]


_NONE = np.zeros(0, np.int64)
UNREAD = HostMemory(_NONE, _NONE, _NONE.astype(np.bool_), {}, lambda _: None)
"""Stands for the memory before the end of a session, which is not read: arrays can be many."""


class HostBlocks:
    """Remembers the lines of arrays from profile to profile, by the numbers of the arrays."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}
        self._earlier: dict[int, Place] = {}
        self._at_begin: frozenset[int] = frozenset()

    def begin(self) -> None:
        """Begin a session: addresses are reused, so this is when they say which array it is."""
        now = blocks_in_use()
        self._at_begin = frozenset(now)
        self._places = {n: place for n, place in self._places.items() if n in now}
        self._earlier = {now[number][0]: place for number, place in self._places.items()}

    def now(self) -> HostMemory:
        """Return the arrays in use now."""
        blocks = blocks_in_use()
        numbers = {address: number for number, (address, nbytes) in blocks.items() if nbytes}

        def keep(places: dict[int, Place]) -> None:
            self._places |= {
                numbers[address]: place for address, place in places.items() if address in numbers
            }

        columns = np.array([blocks[number] for number in numbers.values()], np.int64)
        address, nbytes = columns.reshape(-1, 2).T
        is_older = np.array([number in self._at_begin for number in numbers.values()], np.bool_)
        return HostMemory(address, nbytes, is_older, dict(self._earlier), keep)
