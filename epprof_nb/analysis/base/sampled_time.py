"""Sampled time: host time by samples, summed over groups of stack frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.result_table import OptionalColumn
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


def where_sampled(profile: ProfileData, values: IntArray) -> OptionalColumn:
    """Return sums over samples (int64) as a column that is missing if the host was not sampled.

    Old profiles and those without samples do not say what the host did.
    """
    was_sampled = isinstance(profile.info.get("samples"), dict) or bool(
        len(profile.tables["host_samples"])
    )
    return OptionalColumn(values, np.full(len(values), not was_sampled))


class SampledTime(NamedTuple):
    """Host time of groups of frames, by samples, summed over all threads.

    Attributes
    ----------
    inclusive, own
        int64 arrays, shape ``(groups + 1,)``, in ns: the time with a frame of the group anywhere in
        the stack, and as the innermost one of any group. The last value is for stacks without a
        group.
    samples
        int64 array, shape ``(groups + 1,)``: the number of samples in ``own``.
    """

    inclusive: IntArray
    own: IntArray
    samples: IntArray


def sampled_time(index: ProfileIndex, group: IntArray, count: int) -> SampledTime:
    """Return the sampled time of groups of frames.

    Parameters
    ----------
    index
        Index of the profile.
    group
        int64 array, one value per stack: the group of its innermost frame; `MISSING` for a frame
        whose time belongs to its caller.
    count
        Number of groups.
    """
    samples, parent = index.profile.tables["host_samples"], index.cached(StackLines).parent
    found = group_codes(samples["stack_id"])
    stack = samples["stack_id"][found[1]].astype(np.int64)
    weight = sum_by_group(found[0], samples["interval_ns"], len(stack))[:-1]
    number = sum_by_group(found[0], np.ones(len(samples), np.int64), len(stack))[:-1]
    owner = np.append(nearest_ancestor(parent, group >= 0), MISSING)[stack]
    own = np.append(group, MISSING)[owner]
    pairs, groups = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    at, pair = owner[owner >= 0], np.flatnonzero(owner >= 0)
    while len(at):
        is_known = group[at] >= 0
        pairs.append(pair[is_known])
        groups.append(group[at[is_known]])
        at = parent[at]
        pair, at = pair[at >= 0], at[at >= 0]
    pair, of_pair = np.concatenate(pairs), np.concatenate(groups)
    once = group_codes(pair, of_pair)[1]  # a function that calls itself counts once
    inclusive = sum_by_group(of_pair[once], weight[pair[once]], count)
    inclusive[-1] = weight[own == MISSING].sum()
    return SampledTime(
        inclusive, sum_by_group(own, weight, count), sum_by_group(own, number, count)
    )
