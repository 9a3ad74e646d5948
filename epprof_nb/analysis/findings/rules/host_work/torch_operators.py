"""Findings on the operators of PyTorch, in profiles without device work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.breakdowns.by_range import NO_NAME
from epprof_nb.analysis.findings.finding import Finding, code, op_id_of
from epprof_nb.analysis.findings.hot_shares import HOT_ON_HOST
from epprof_nb.analysis.frameworks.by_operator import NO_OPERATOR, operator_table
from epprof_nb.analysis.frameworks.operator_links import is_operator
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex


def slowest_torch_operator(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the operator of PyTorch that takes most of the host time of all.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> list(slowest_torch_operator(ProfileIndex(synthetic_profile(activities=100))))
    []
    """
    if not is_operator(index).any():
        return
    table = operator_table(index)
    names = table.values("name")
    # The time of each operator without the operators that it calls.
    time = np.where([name == NO_OPERATOR for name in names], 0, table["self_host_ns"])
    slowest, whole = int(time.argmax()), int(time.sum())
    own_ns = int(time[slowest])
    if own_ns <= 0 or own_ns < HOT_ON_HOST * whole:
        return
    ops = index.profile.tables["ops"]
    name = names[slowest]
    named = ops.names("name")
    is_one = named.codes == MISSING if name is None else named.equals(name)
    rows = np.flatnonzero(is_operator(index) & is_one)
    longest = int(rows[int(ops["duration_ns"][rows].argmax())])
    yield Finding(
        f"{code(name) if name else NO_NAME} accounts for {percent(own_ns / whole)} of the host "
        f"time of PyTorch's operators ({duration(own_ns)} in "
        f"{plural(int(table['count'][slowest]), 'call')}).",
        own_ns,
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="hot operator",
        remedy="Make these calls faster, or make fewer of them: `prof.by_operator(modules=True)` "
        "has the modules that make them.",
        op_id=op_id_of(index, longest),
        table="ops",
        rows=partial(np.copy, rows),
    )
