"""Sums of device work and host time over groups of ops; what belongs to none is kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.attribution import Attribution
    from epprof_nb.analysis.index import Shared
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData


@dataclass(frozen=True, slots=True)
class Totals:
    """What each group of ops adds up to.

    Attributes
    ----------
    shown
        bool array, one a group: it ran, or activities count for it.
    count
        int64 array, one a group: executions.
    work
        Measure to int64 array, one a group, over the group's ops and all below them:
        ``activities``, ``device_ns``, ``bytes``, ``kernels``, ``memcpys``, ``memsets``,
        ``copied_bytes`` and ``copy_ns`` (of copies alone), ``delay_ns`` (of launches, summed)
        and ``delays`` (how many).
    device_ns_of_op
        int64 array, one an op: device time that counts for it and all below it.
    own_device_ns
        int64 array, one a group: device time that counts for the group itself.
    host_ns, own_host_ns
        int64 arrays, one a group: host time in all, and outside the ops below.
    rest
        Measure to what belongs to no group.
    """

    shown: BoolArray
    count: IntArray
    work: dict[str, IntArray]
    device_ns_of_op: IntArray
    own_device_ns: IntArray
    host_ns: IntArray
    own_host_ns: IntArray
    rest: dict[str, int]

    @property
    def has_rest(self) -> bool:
        """Whether device work belongs to no group."""
        return self.rest["activities"] > 0

    @property
    def device_ns(self) -> int:
        """The device time of all activities."""
        return int(self.own_device_ns.sum()) + self.rest["device_ns"]

    def longest_first(self) -> IntArray:
        """Return the shown groups by device time, then host time, the longest first."""
        order: IntArray = np.lexsort((-self.host_ns, -self.work["device_ns"]))
        return order[self.shown[order]]


def totals(
    profile: ProfileData,
    shared: Shared,
    groups: IntArray,
    owner: IntArray,
    *,
    attribution: Attribution,
) -> Totals:
    """Add up the activities and the host time of groups of ops.

    Parameters
    ----------
    profile
        The profile.
    shared
        What the profile's tables share.
    groups
        int64 array: the group of each op, numbered from 0 without a hole; `MISSING` for ops
        without one.
    owner
        int64 array: for each op the row of the op, itself or one above it, for which its work
        counts as own; `MISSING` where there is none. Owners have a group and own themselves.
    attribution
        See `epprof_nb.analysis.attribution.op_rows`.

    Returns
    -------
    totals
        The sums. An op below one of its own group is not counted twice.
    """
    ops, tree = profile.tables["ops"], shared.tree
    n = int(groups.max(initial=-1)) + 1
    # Where a row is missing, its index, -1, leads to the last element: missing again.
    owner = np.append(owner, MISSING)
    of_owner = shared.op_sums(attribution)
    if not np.array_equal(owner[:-1], np.arange(len(ops))):
        of_owner = {
            name: sum_by_group(owner, values, len(ops)) for name, values in of_owner.items()
        }
    outer = np.flatnonzero(tree.outermost(groups))
    group_of = groups[outer]
    work = {}
    for name, values in of_owner.items():
        of_op = tree.subtree_sum(values[:-1])
        work[name] = sum_by_group(group_of, of_op[outer], n)[:-1]
        if name == "device_ns":
            device_ns_of_op = of_op
    # An op of an earlier profile is here for the graph that it captured: it did not run.
    ran = ~ops.names("status").equals("earlier")
    host = np.where(ran, ops["duration_ns"], 0)
    own_host = host.copy()
    above = owner[tree.parent]
    inner = np.flatnonzero((groups >= 0) & (above >= 0))
    inner = inner[ops["thread_id"][inner] == ops["thread_id"][above[inner]]]
    np.subtract.at(own_host, above[inner], host[inner])
    count = sum_by_group(groups, np.where(ran, ops["count"], 0), n)[:-1]
    return Totals(
        shown=(count > 0) | (work["activities"] > 0),
        count=count,
        work=work,
        device_ns_of_op=device_ns_of_op,
        own_device_ns=sum_by_group(groups, of_owner["device_ns"][:-1], n)[:-1],
        host_ns=sum_by_group(group_of, host[outer], n)[:-1],
        own_host_ns=sum_by_group(groups, np.maximum(own_host, 0), n)[:-1],
        rest={name: int(values[-1]) for name, values in of_owner.items()},
    )


def share(part: IntArray, whole: int) -> npt.NDArray[np.float64]:
    """Return `part` as fractions of `whole`; 0 where there is no whole."""
    return part / whole if whole else np.zeros(len(part))
