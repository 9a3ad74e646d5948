"""Device work added up by op and by name, for a few rows or for whole pieces of the table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.device_work import KERNEL, MEMCPY, MEMSET
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.views.view_model import Prepared


class ByName(NamedTuple):
    """How often each name occurs, and how long it took in all; only names that occur.

    ``codes`` are those of the column of names, -1 for what has none; ``number`` and ``spent``
    (ns) are one a code, int64.
    """

    codes: IntArray
    number: IntArray
    spent: IntArray


class Sums(NamedTuple):
    """What some activities add up to.

    ``counts`` are kernels, copies, sets, bytes of the copies, and the time of all device work in
    ns; ``ops`` and ``names`` are that work by the name of the op that launched it, and by its own.
    """

    counts: IntArray
    ops: ByName
    names: ByName


class Adding:
    """The activities of a profile, added up.

    Parameters
    ----------
    prepared
        The profile.
    """

    def __init__(self, prepared: Prepared) -> None:
        self._work, self._device_work = prepared.work, prepared.device_work
        self._activities = prepared.profile.tables["activities"]
        self._names = self._activities.names("name").codes
        # Row -1, no op, is the last one.
        codes = prepared.profile.tables["ops"].names("name").codes
        self._op_names = np.append(codes, np.int32(MISSING))

    def of(self, rows: IntArray | slice, low: int | None = None, high: int | None = None) -> Sums:
        """Add up rows, their time only as far as it lies between `low` and `high` where given."""
        start, end = self._activities["start_ns"][rows], self._activities["end_ns"][rows]
        if low is not None:
            start = np.maximum(start, low)
        if high is not None:
            end = np.minimum(end, high)
        spent = np.maximum(end - start, 0)
        kinds, work = self._work.kinds[rows], self._device_work[rows]
        bytes_ = self._activities["bytes"][rows][kinds == MEMCPY]
        ops = self._op_names[self._work.tree.rows(self._activities["op_id"][rows])]
        counts = [np.count_nonzero(kinds == kind) for kind in (KERNEL, MEMCPY, MEMSET)]
        counts += [np.maximum(bytes_, 0).sum(), spent.sum(where=work)]
        return Sums(
            np.array(counts, np.int64),
            _by_code(ops, work, spent),
            _by_code(self._names[rows], work, spent),
        )

    def of_each(self, pieces: Sequence[slice]) -> list[Sums]:
        """Add up each of several pieces, on two threads."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(self.of, pieces))


def _by_code(codes: npt.NDArray[Any], work: BoolArray, spent: IntArray) -> ByName:
    # What has no name comes first, and what is no work last.
    most = int(codes.max(initial=MISSING)) + 2
    key = np.where(work, codes + 1, most).astype(np.int64)
    number = np.bincount(key, minlength=most + 1)[:most]
    time = np.zeros(most + 1, np.int64)
    np.add.at(time, key, spent)
    found = np.flatnonzero(number)
    return ByName(found - 1, number[found], time[found])


def joined(sums: Iterable[ByName]) -> ByName:
    """Add sums up to one."""
    codes, number, spent = (np.concatenate(column) for column in zip(*sums, strict=True))
    most = int(codes.max(initial=MISSING)) + 2
    numbers, times = np.zeros((2, most), np.int64)
    np.add.at(numbers, codes + 1, number)
    np.add.at(times, codes + 1, spent)
    found = np.flatnonzero(numbers)
    return ByName(found - 1, numbers[found], times[found])
