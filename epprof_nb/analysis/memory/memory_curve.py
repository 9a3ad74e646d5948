"""Memory in use over time, by category and by pool: counters of each device for the timeline.

A counter with more changes than the points it may have keeps the extremes: each point has the
greatest sum until the next one, with its parts and its time, and the least sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from epprof_nb.analysis.base.devices import device_name
from epprof_nb.analysis.memory.block_categories import block_categories
from epprof_nb.analysis.memory.memory_peak import ALWAYS, ALWAYS_BEFORE, InUse
from epprof_nb.arrays.ids import unique_values
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

By = Literal["category", "pool"]

BEFORE, UNKNOWN, OTHER_POOLS = "before this profile", "unknown", "other pools"
_MAX_POOLS = 8
_ORDER = (BEFORE, "parameter", "optimizer state", "gradient", "activation")
"""Categories from the bottom up: what stays lies below what comes and goes."""


class MemoryCurve:
    """Bytes in use of a device over time, in parts that add up.

    Parameters
    ----------
    index
        The profile.
    device_id
        The device.
    by
        What the parts are: categories or pools.

    Attributes
    ----------
    parts : list of str
        Names of the parts, from the bottom up.
    time, total : int64 arrays
        Each change, ns, ascending, and the bytes in use after it.
    """

    def __init__(self, index: ProfileIndex, device_id: int, by: By) -> None:
        blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
        rows = np.flatnonzero(blocks["device_id"] == device_id)
        names = _parts(index, by).take(rows)
        begin, end, size = in_use.begin[rows], in_use.end[rows], blocks["bytes"][rows]
        # At one time, releases come before allocations.
        time = np.concatenate([end, begin]).clip(min=0)
        order = np.argsort(time, kind="stable")
        order = order[: np.searchsorted(time, ALWAYS, sorter=order)]
        change, part = np.concatenate([-size, size])[order], np.tile(names.codes, 2)[order]
        self.time, step = np.unique(time[order], return_inverse=True)
        last = np.searchsorted(step, np.arange(len(self.time)), side="right") - 1
        self.total: IntArray = np.cumsum(change)[last]
        self.parts: list[str] = []
        self._changes: list[tuple[IntArray, IntArray]] = []
        for code in sorted(
            unique_values(names.codes.astype(np.int64)), key=lambda c: _rank(names.categories[c])
        ):
            of_part = np.flatnonzero(part == code)
            self.parts.append(names.categories[code])
            self._changes.append((step[of_part], np.cumsum(change[of_part])))

    @property
    def peak(self) -> tuple[int, int]:
        """Time of the first greatest sum, and its bytes."""
        step = int(self.total.argmax())
        return int(self.time[step]), int(self.total[step])

    def columns(
        self, window: tuple[int, int] | None, points: int
    ) -> dict[str, npt.NDArray[np.int64]]:
        """Return at most about `points` points, in a window or in all.

        ``t`` is the time of a point, ns; ``at`` and ``part.<number>`` are time and parts of the
        greatest sum from there to the next point, and ``low`` is the least sum.
        """
        low, high = window or (int(self.time[0]), int(self.time[-1]))
        first, last = np.searchsorted(self.time, (low, high), "right").tolist()
        step = np.arange(max(first - 1, 0), last)
        if len(step) <= points:
            t, least = self.time[step], self.total[step]
        else:
            t, step, least = greatest(self.time, self.total, low, high, points)
        result = {"t": t, "at": np.maximum(self.time[step], t), "low": least}
        for number, (steps, total) in enumerate(self._changes):
            before = np.searchsorted(steps, step, side="right")
            result[f"part.{number}"] = np.append(0, total)[before]
        return result


def greatest(
    time: IntArray, total: IntArray, low: int, high: int, points: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return equidistant times, the first greatest value until the next, and the least one.

    Parameters
    ----------
    time, total
        int64 arrays: the changes, ns, ascending, and the values after them.
    low, high
        First and last nanosecond.
    points
        Maximum number of times.

    Returns
    -------
    t, step, least
        int64 arrays: the times, the position of the change to the greatest value, the least value.
    """
    begin, end = max(low, int(time[0])), min(high, int(time[-1]))
    t = np.unique(np.rint(np.linspace(begin, end, points)).astype(np.int64))
    # A value that holds at a time belongs to its interval, too.
    first = np.searchsorted(time, t, side="right") - 1
    last = np.append(np.searchsorted(time, t[1:], side="left"), first[-1] + 1)
    bounds = np.stack([first, last], axis=1).reshape(-1)
    values = np.append(total, 0)
    most = np.maximum.reduceat(values, bounds)[::2]
    least = np.minimum.reduceat(values, bounds)[::2]
    sizes = last - first
    of = np.repeat(np.arange(len(t)), sizes)
    step = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[of]
    is_most = np.flatnonzero(total[step] == most[of])
    _, first_most = np.unique(of[is_most], return_index=True)
    return t, step[is_most[first_most]], least


def memory_tracks(index: ProfileIndex) -> list[dict[str, Any]]:
    """Return the counters of memory that a profile has.

    Returns
    -------
    tracks
        One ``{"what", "device", "name", "parts", "peak"}`` per counter: ``what`` is ``"memory"``
        (by category) or ``"pools"``, which a device with one pool does not have; ``parts`` are the
        names from the bottom up, and ``peak`` is time (ns) and bytes of the greatest sum.
    """
    blocks = index.profile.tables["memory_blocks"]
    tracks = []
    for device in unique_values(blocks["device_id"]):
        name = device_name(index.profile.info, device)
        for what, by in _KINDS:
            curve = index.cached(MemoryCurve, device, by)
            if device >= 0 and (what == "memory" or len(curve.parts) > 1):
                tracks.append({"what": what, "device": device, "name": name,
                               "parts": curve.parts, "peak": curve.peak})  # fmt: skip
    return tracks


def memory_columns(
    index: ProfileIndex, window: tuple[int, int] | None, points: int
) -> list[dict[str, npt.NDArray[np.int64]]]:
    """Return the columns of each of `memory_tracks`; see `MemoryCurve.columns`."""
    by = dict(_KINDS)
    return [
        index.cached(MemoryCurve, track["device"], by[track["what"]]).columns(window, points)
        for track in index.cached(memory_tracks)
    ]


_KINDS: tuple[tuple[str, By], ...] = (("memory", "category"), ("pools", "pool"))


def _parts(index: ProfileIndex, by: By) -> CategoryColumn:
    if by == "pool":
        return _largest_pools(index.profile.tables["memory_blocks"])
    categories = _named(index.cached(block_categories), UNKNOWN, BEFORE)
    is_unknown = categories.codes == categories.categories.index(UNKNOWN)
    is_before = index.cached(InUse).begin == ALWAYS_BEFORE
    codes = np.where(
        is_unknown & is_before, categories.categories.index(BEFORE), categories.codes
    ).astype(np.int32)
    return CategoryColumn(codes, categories.categories)


def _largest_pools(blocks: Table) -> CategoryColumn:
    """Return the pool of each block, with one name for all but the largest ones."""
    pools = _named(blocks.names("pool"), UNKNOWN, OTHER_POOLS)
    size = np.bincount(pools.codes, blocks["bytes"], len(pools.categories))
    is_small = np.ones(len(size), np.bool_)
    is_small[np.argsort(-size, kind="stable")[:_MAX_POOLS]] = False
    codes = np.where(is_small[pools.codes], len(size) - 1, pools.codes).astype(np.int32)
    return CategoryColumn(codes, pools.categories)


def _named(names: CategoryColumn, missing: str, *more: str) -> CategoryColumn:
    """Return names with one for those that are missing, and room for more."""
    codes = np.where(names.codes < 0, len(names.categories), names.codes).astype(np.int32)
    return CategoryColumn(codes, (*names.categories, missing, *more))


def _rank(name: str) -> tuple[int, bool]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name == "temporary")
