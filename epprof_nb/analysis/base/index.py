"""ProfileIndex: arrays derived from a profile's tables, each computed once."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from epprof_nb.analysis.base.activity_sums import activity_sums
from epprof_nb.analysis.base.attribution import Attribution, attributed_op_rows, launch_delays
from epprof_nb.analysis.base.device_work import (
    OpDeviceTime,
    count_launches,
    device_work,
    kind_codes,
)
from epprof_nb.analysis.base.op_tree import OpTree
from epprof_nb.analysis.base.time_chunks import TimeChunks
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import IdIndex, rows_as_slice, unique_values
from epprof_nb.arrays.intervals import covered_until, union
from epprof_nb.arrays.stable_order import in_order
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.util.cached import KeyedCache, cached_property, weakly
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray

_T = TypeVar("_T")


class ProfileIndex:
    """Derived arrays of a profile, and a cache of the results computed from them.

    Everything is computed on first access and kept for the lifetime of the index. All methods are
    thread-safe.

    Parameters
    ----------
    profile
        The profile; it must not change while the index is in use.

    Examples
    --------
    >>> from epprof_nb.analysis.summary.headline import headline_of
    >>> from epprof_nb.testing import synthetic_profile
    >>> index = ProfileIndex(synthetic_profile(activities=100))
    >>> index.cached(headline_of) is index.cached(headline_of)
    True
    """

    def __init__(self, profile: ProfileData) -> None:
        self.profile = profile
        # Without a cycle of references, the arrays are freed with the index, not later.
        self._results: KeyedCache[tuple[Any, ...], Any] = KeyedCache(weakly(self._compute_result))
        self._op_sums = KeyedCache(weakly(self._compute_op_sums))
        self._busy = KeyedCache(weakly(self._compute_busy))
        self._calls_of_thread = KeyedCache(weakly(self._compute_calls_of_thread))

    def _compute_result(self, key: tuple[Any, ...]) -> Any:  # noqa: ANN401 - of any analysis
        return key[0](self, *key[1:])

    def cached(self, compute: Callable[..., _T], *args: Any) -> _T:
        """Return ``compute(index, *args)``, computed once for each function and arguments."""
        result: _T = self._results[compute, *args]
        return result

    @cached_property
    def tree(self) -> OpTree:
        """The tree of the ops."""
        return OpTree(self.profile.tables["ops"])

    @cached_property
    def statement(self) -> IntArray:
        """Row of the innermost statement that is or contains each op; `MISSING` for none."""
        return self.tree.nearest_ancestor(self.profile.tables["ops"]["line"] != MISSING)

    @cached_property
    def kinds(self) -> npt.NDArray[np.uint8]:
        """Code of each activity's kind; see `kind_codes`."""
        return kind_codes(self.profile.tables["activities"])

    @cached_property
    def is_device_work(self) -> BoolArray:
        """Mask of the activities that are device work; see `device_work`."""
        return device_work(self.profile.tables["activities"])

    @cached_property
    def device_ids(self) -> list[int]:
        """Devices of the activities, ascending; starts with `MISSING` if some have none."""
        return unique_values(self.profile.tables["activities"]["device_id"])

    def work_of(self, device_id: int) -> IntArray:
        """Return the rows of a device's work, ascending; see `device_work`."""
        return self._work_by_device.get(device_id, np.empty(0, np.int64))

    @cached_property
    def _work_by_device(self) -> dict[int, IntArray]:
        """Rows of the work of each device.

        A single sort serves all devices; one pass per device would be slow with many devices.
        """
        rows = np.flatnonzero(self.is_device_work)
        if len(self.device_ids) == 1:
            return {self.device_ids[0]: rows}
        devices = self.profile.tables["activities"]["device_id"][rows]
        order = np.argsort(devices, kind="stable")
        begins = np.searchsorted(devices[order], self.device_ids)
        return dict(zip(self.device_ids, np.split(rows[order], begins[1:]), strict=True))

    @cached_property
    def activity_op(self) -> npt.NDArray[np.int32]:
        """Row of the op that launched each activity; `MISSING` if unattributed."""
        return self._op_rows("activities")

    @cached_property
    def call_op(self) -> npt.NDArray[np.int32]:
        """Row of the op that made each API call; `MISSING` if unattributed."""
        return self._op_rows("api_calls")

    def attributed_op(self, attribution: Attribution) -> npt.NDArray[np.signedinteger[Any]]:
        """Return `attributed_op_rows` of the activities; not to be written to."""
        if attribution == "launch":
            return self.activity_op
        return attributed_op_rows(self.profile.tables["activities"], self.tree, attribution)

    def _op_rows(self, table: str) -> npt.NDArray[np.int32]:
        ids = self.profile.tables[table]["op_id"]
        rows = np.empty(len(ids), np.int32)
        for chunk in chunks(len(ids)):
            rows[chunk] = self.tree.rows(ids[chunk])
        return rows

    @cached_property
    def calls(self) -> IdIndex:
        """Index from correlation ids to rows of the API calls."""
        return IdIndex(self.profile.tables["api_calls"]["correlation_id"])

    def calls_of_thread(self, thread_id: int) -> IntArray:
        """Return the rows of the API calls of a thread, by start; not to be written to."""
        return self._calls_of_thread[thread_id]

    def _compute_calls_of_thread(self, thread_id: int) -> IntArray:
        calls = self.profile.tables["api_calls"]
        rows = np.flatnonzero(calls["thread_id"] == thread_id)
        return in_order(rows, calls["start_ns"][rows])

    @cached_property
    def delays(self) -> tuple[IntArray, BoolArray]:
        """Launch delays of the activities, and whether they are known; see `launch_delays`."""
        tables = self.profile.tables
        return launch_delays(tables["activities"], tables["api_calls"], self.calls)

    @cached_property
    def op_device_time(self) -> OpDeviceTime:
        """Device time of each op and all ops below it, by kind of activity."""
        activities = self.profile.tables["activities"]
        return OpDeviceTime(activities, self.tree, self.activity_op, self.kinds)

    @cached_property
    def op_launches(self) -> IntArray:
        """Number of kernels, memcpys and memsets of each op and all ops below it."""
        return count_launches(self.tree, self.activity_op, self.kinds)

    @cached_property
    def time_chunks(self) -> TimeChunks:
        """Chunks of the activities with their time bounds."""
        return TimeChunks(self.profile.tables["activities"])

    def busy(self, device_id: int | None = None) -> tuple[IntArray, IntArray]:
        """Return the disjoint intervals in which a device (None: any device) executed work."""
        return self._busy[device_id]

    def busy_until(self, times: IntArray) -> IntArray:
        """Return for each time (ns) how long any device was busy before it."""
        return covered_until(*self.busy(), times)

    def _compute_busy(self, device_id: int | None) -> tuple[IntArray, IntArray]:
        activities = self.profile.tables["activities"]
        if device_id is None:
            of_devices = [self.busy(device) for device in self.device_ids]
            if len(of_devices) == 1:
                return of_devices[0]
            starts = [np.empty(0, np.int64), *(start for start, _ in of_devices)]
            ends = [np.empty(0, np.int64), *(end for _, end in of_devices)]
            return union(np.concatenate(starts), np.concatenate(ends))
        work = rows_as_slice(self.work_of(device_id))
        return union(activities["start_ns"][work], activities["end_ns"][work])

    def op_sums(self, attribution: Attribution) -> dict[str, IntArray]:
        """Return the sums of the activities attributed to each op itself.

        Parameters
        ----------
        attribution
            See `epprof_nb.analysis.base.attribution.attributed_op_rows`.

        Returns
        -------
        sums
            Name of a measure to int64 array, shape ``(ops + 1,)``; the last element is the sum
            over the activities without an op. See `epprof_nb.analysis.base.activity_sums.MEASURES`.
        """
        return self._op_sums[attribution]

    def _compute_op_sums(self, attribution: Attribution) -> dict[str, IntArray]:
        return activity_sums(self, self.attributed_op(attribution), len(self.tree))


_indexes: WeakKeyDictionary[ProfileData, ProfileIndex] = WeakKeyDictionary()
_lock = fork_safe_lock()


def index_of(profile: ProfileData) -> ProfileIndex:
    """Return the index stored with a profile, so that analyses share results.

    Parameters
    ----------
    profile
        The profile. If its tables, info or sources have changed since the last call, the index is
        a new one.

    Notes
    -----
    The index refers to the tables of the profile but not to the profile, which owns the index.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> profile = synthetic_profile(activities=100)
    >>> index_of(profile) is index_of(profile)
    True
    """
    with _lock:
        index = _indexes.get(profile)
        if index is not None and _is_same(index.profile, profile):
            return index
        try:
            info = deepcopy(profile.info)
        except Exception:  # noqa: BLE001 - a user's value that cannot be copied
            return ProfileIndex(profile)
        index = _indexes[profile] = ProfileIndex(ProfileData(profile.tables, info, profile.sources))
    return index


def add_to_info(profile: ProfileData, **entries: Any) -> None:
    """Add entries to a profile's info that change no analysis, so that its index stays.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> profile = synthetic_profile(activities=100)
    >>> index = index_of(profile)
    >>> add_to_info(profile, place="here")
    >>> index_of(profile) is index
    True
    """
    with _lock:
        index = _indexes.get(profile)
        is_current = index is not None and _is_same(index.profile, profile)
        profile.info.update(entries)
        if index is not None and is_current:
            index.profile.info.update(deepcopy(entries))


def _is_same(indexed: ProfileData, profile: ProfileData) -> bool:
    """Return whether a profile has the tables, info and sources that were indexed."""
    try:
        return (
            indexed.tables.keys() == profile.tables.keys()
            and all(table is profile.tables[name] for name, table in indexed.tables.items())
            and indexed.sources == profile.sources
            and bool(indexed.info == profile.info)
        )
    except Exception:  # noqa: BLE001 - arrays and DataFrames do not compare as a whole
        return False
