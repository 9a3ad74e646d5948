"""Sums of device work and host time over groups of ops; what belongs to none is kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.groups import add_up
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.attribution import Attribution
    from epprof_nb.analysis.index import Shared
    from epprof_nb.data.profile_data import ProfileData

_Int = npt.NDArray[np.int64]


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

    shown: npt.NDArray[np.bool_]
    count: _Int
    work: dict[str, _Int]
    device_ns_of_op: _Int
    own_device_ns: _Int
    host_ns: _Int
    own_host_ns: _Int
    rest: dict[str, int]

    @property
    def has_rest(self) -> bool:
        """Whether device work belongs to no group."""
        return self.rest["activities"] > 0

    @property
    def device_ns(self) -> int:
        """The device time of all activities."""
        return int(self.own_device_ns.sum()) + self.rest["device_ns"]

    def longest_first(self) -> _Int:
        """Return the shown groups by device time, then host time, the longest first."""
        order: _Int = np.lexsort((-self.host_ns, -self.work["device_ns"]))
        return order[self.shown[order]]


def totals(
    profile: ProfileData,
    shared: Shared,
    groups: _Int,
    owner: _Int,
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
        of_owner = {name: add_up(owner, values, len(ops)) for name, values in of_owner.items()}
    outer = np.flatnonzero(tree.outermost(groups))
    group_of = groups[outer]
    work = {}
    for name, values in of_owner.items():
        of_op = tree.subtree_sum(values[:-1])
        work[name] = add_up(group_of, of_op[outer], n)[:-1]
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
    count = add_up(groups, np.where(ran, ops["count"], 0), n)[:-1]
    return Totals(
        shown=(count > 0) | (work["activities"] > 0),
        count=count,
        work=work,
        device_ns_of_op=device_ns_of_op,
        own_device_ns=add_up(groups, of_owner["device_ns"][:-1], n)[:-1],
        host_ns=add_up(group_of, host[outer], n)[:-1],
        own_host_ns=add_up(groups, np.maximum(own_host, 0), n)[:-1],
        rest={name: int(values[-1]) for name, values in of_owner.items()},
    )


def share(part: _Int, whole: int) -> npt.NDArray[np.float64]:
    """Return `part` as fractions of `whole`; 0 where there is no whole."""
    return part / whole if whole else np.zeros(len(part))
