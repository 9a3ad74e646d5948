"""Totals: sums of device work and host time over groups of ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.activity_sums import MEASURES
from epprof_nb.analysis.base.op_status import host_times, ran
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over groups of ops.

    Attributes
    ----------
    shown
        bool array, one value per group: whether it ran or has activities.
    count
        int64 array, one value per group: executions.
    measures
        Name to int64 array, one value per group, over the group's ops and all ops below them:
        ``activities``, ``device_ns``, ``bytes``, ``kernels``, ``memcpys``, ``memsets``,
        ``copied_bytes`` and ``copy_ns`` (of copies alone), ``delay_ns`` (sum of the launch
        delays) and ``delays`` (their number).
    device_ns_of_op
        int64 array, one value per op: device time of the op and all ops below it.
    own_measures
        The same names for the groups themselves, without the ops below them.
    host_ns, own_host_ns
        int64 arrays, one value per group: host time in total, and without the ops below.
    unattributed
        Name of a measure to its sum over activities that belong to no group.
    """

    shown: BoolArray
    count: IntArray
    measures: dict[str, IntArray]
    device_ns_of_op: IntArray
    own_measures: dict[str, IntArray]
    host_ns: IntArray
    own_host_ns: IntArray
    unattributed: dict[str, int]

    @property
    def has_unattributed(self) -> bool:
        """Whether some device work belongs to no group."""
        return self.unattributed["activities"] > 0

    @property
    def device_ns(self) -> int:
        """Device time of all activities."""
        return int(self.own_measures["device_ns"].sum()) + self.unattributed["device_ns"]

    def longest_first(self) -> IntArray:
        """Return the shown groups by descending device time, then host time."""
        order: IntArray = np.lexsort((-self.host_ns, -self.measures["device_ns"]))
        return order[self.shown[order]]


def totals(
    index: ProfileIndex,
    groups: IntArray,
    owner: IntArray,
    *,
    attribution: Attribution,
    only: Collection[str] = MEASURES,
) -> Totals:
    """Sum up the activities and the host time of groups of ops.

    Parameters
    ----------
    index
        Index of the profile.
    groups
        int64 array: the group of each op, numbered from 0 without gaps; `MISSING` for ops without
        a group.
    owner
        int64 array: for each op, the row of the op (itself or an ancestor) that owns its
        activities; `MISSING` for none. Owners have a group and own themselves.
    attribution
        See `epprof_nb.analysis.base.attribution.attributed_op_rows`.
    only
        Names of the measures to sum, with ``activities`` and ``device_ns``.

    Returns
    -------
    totals
        The sums. An op below another op of its group is not counted twice.
    """
    ops, tree = index.profile.tables["ops"], index.tree
    n = int(groups.max(initial=-1)) + 1
    # Often nothing is copied, and all work is kernels.
    of_owner = {
        name: values
        for name, values in index.op_sums(attribution).items()
        if name in ("activities", "device_ns") or (name in only and values.any())
    }
    if not n:
        return _without_groups(len(ops), of_owner, only)
    above = tree.parent
    if not np.array_equal(owner, np.arange(len(ops))):
        # The index `MISSING` selects the last element, which is `MISSING` too.
        owner = np.append(owner, MISSING)
        above = owner[above]
        of_owner = {
            name: sum_by_group(owner, values, len(ops)) for name, values in of_owner.items()
        }
    outermost = np.where(tree.is_outermost(groups), groups, MISSING)
    measures = {name: np.zeros(n, np.int64) for name in only}
    own_measures = dict(measures)
    for name, values in of_owner.items():
        if name == "kernels" and np.array_equal(values, of_owner["activities"]):
            measures[name], own_measures[name] = (m["activities"] for m in (measures, own_measures))
            continue
        of_op = tree.subtree_sum(values[:-1])
        measures[name] = sum_by_group(outermost, of_op, n)[:-1]
        own_measures[name] = sum_by_group(groups, values[:-1], n)[:-1]
        if name == "device_ns":
            device_ns_of_op = of_op
    host_ns = host_times(ops)
    own_host_ns = self_host_ns(ops, np.where(groups >= 0, above, MISSING))
    count = sum_by_group(groups, np.where(ran(ops), ops["count"], 0), n)[:-1]
    return Totals(
        shown=(count > 0) | (measures["activities"] > 0),
        count=count,
        measures=measures,
        device_ns_of_op=device_ns_of_op,
        own_measures=own_measures,
        host_ns=sum_by_group(outermost, host_ns, n)[:-1],
        own_host_ns=sum_by_group(groups, own_host_ns, n)[:-1],
        unattributed=dict.fromkeys(only, 0)
        | {name: int(values[-1]) for name, values in of_owner.items()},
    )


def _without_groups(ops: int, sums: dict[str, IntArray], only: Collection[str]) -> Totals:
    """Return the totals of a profile without groups, such as that of a script without cells."""
    none, unattributed = np.zeros(0, np.int64), dict.fromkeys(only, 0)
    return Totals(
        shown=np.zeros(0, np.bool_),
        count=none,
        measures=dict.fromkeys(only, none),
        device_ns_of_op=np.zeros(ops, np.int64),
        own_measures=dict.fromkeys(only, none),
        host_ns=none,
        own_host_ns=none,
        unattributed=unattributed | {name: int(values.sum()) for name, values in sums.items()},
    )


def outermost_of_name(index: ProfileIndex) -> BoolArray:
    """Return a mask of the ops without an ancestor of the same name, type and place."""
    ops = index.profile.tables["ops"]
    names = (ops.names(name).codes for name in ("name", "op_type", "cell"))
    return index.tree.is_outermost(group_codes(*names, ops["line"])[0])


def self_host_ns(ops: Table, above: IntArray) -> IntArray:
    """Return the host time (ns) of each op without the ops below it on its thread.

    Parameters
    ----------
    ops
        The ops.
    above
        int64 array: row of the op from which to subtract the time of each op; `MISSING` for none.
    """
    host_ns, thread = host_times(ops), ops["thread_id"]
    if len(ops) and thread.min() < thread.max():
        # The index `MISSING` selects a thread, too, but stays `MISSING`.
        above = np.where(thread == thread[above], above, MISSING)
    own: IntArray = host_ns - sum_by_group(above, host_ns, len(ops))[:-1]
    return np.maximum(own, 0, out=own)


def share(part: IntArray, whole: int) -> npt.NDArray[np.float64]:
    """Return `part` as fractions of `whole`; 0 if `whole` is 0."""
    return part / whole if whole else np.zeros(len(part))
