"""Findings on the modules of PyTorch, in profiles without device work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.op_totals import self_host_ns
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import Finding, code, op_id_of, time_taken
from epprof_nb.analysis.findings.hot_shares import HOT_ON_HOST
from epprof_nb.analysis.frameworks.operator_links import is_operator
from epprof_nb.analysis.frameworks.training_phases import MODULE_TYPES, is_of_type
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex

_IN_BACKWARD = ("backward", "recompute")


def slowest_module(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the module that takes most host time, without the modules inside of it.

    This time excludes compilations.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> list(slowest_module(ProfileIndex(synthetic_profile(activities=100))))  # has no modules
    []
    """
    ops, tree = index.profile.tables["ops"], index.tree
    is_module = is_of_type(index, *MODULE_TYPES) & has_host_time(ops)
    rows = np.flatnonzero(is_module)
    if not len(rows):
        return
    # A compilation runs once. Its module does not do this work in every call.
    counted = is_module | (is_of_type(index, "compile") & has_host_time(ops))
    above = np.append(tree.nearest_ancestor(counted), MISSING)[tree.parent]
    own_ns = self_host_ns(ops, np.where(counted, above, MISSING))[rows]
    paths, first = group_codes(ops.names("name").codes[rows])
    of_path = sum_by_group(paths, own_ns, len(first))[:-1]
    top = int(of_path.argmax())
    total, wall_ns = int(of_path[top]), wall_of(index.profile)
    if total < HOT_ON_HOST * wall_ns:
        return
    calls = rows[paths == top]
    backward = is_of_type(index, *_IN_BACKWARD)[rows]
    backward_ns = int(own_ns[(paths == top) & backward].sum())
    (name,) = ops.names("name").take(calls[:1]).to_list()
    longest = int(calls[int(ops["duration_ns"][calls].argmax())])
    passes = f", {duration(backward_ns)} of it in backward passes" if backward_ns else ""
    took = time_taken(total, wall_ns, len(np.unique(ops["thread_id"][calls])), passes)
    operators = (
        "`prof.by_operator(modules=True)` has its operators"
        if is_operator(index).any()
        else "`--detail operators` records its operators"
    )
    yield Finding(
        f"Module {code(str(name))} {took}, without the modules inside of it.",
        min(total, wall_ns),
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="hot module",
        remedy=f"Make this module faster, or call it less often: {operators}.",
        op_id=op_id_of(index, longest),
        table="ops",
        rows=partial(np.copy, calls),
    )
