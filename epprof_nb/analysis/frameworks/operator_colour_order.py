"""Operators in the order of their colours in the timeline: of nodes, else `framework_names`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import host_times
from epprof_nb.analysis.frameworks.framework_names import rank_framework_operators
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


@dataclass(frozen=True, slots=True)
class Operators:
    """Operators of the nodes of a profile, or names of framework ops.

    Attributes
    ----------
    names
        The operators, those with the most time first.
    ranks
        int64 array, one value per op: the position of its operator in `names`; `MISSING` for an op
        that is not a node.
    label
        The kind of name: "operator", "module" or "function".
    totals
        Host time (ns) and executions of each name of a framework; None for nodes, because the
        breakdown by operator has their times.
    """

    names: tuple[str, ...]
    ranks: IntArray
    label: str = "operator"
    totals: dict[str, tuple[int, int]] | None = None


def rank_operators(index: ProfileIndex) -> Operators:
    """Return the operators by device time, or by host time if no device work was recorded.

    The time of a node that contains others, such as a Loop, counts for the nodes inside. Without
    nodes, the names come from `epprof_nb.analysis.frameworks.framework_names`.
    """
    ops = index.profile.tables["ops"]
    is_node = ops.names("category").equals("node")
    op_type = ops.names("op_type")
    nodes = np.flatnonzero(is_node & (op_type.codes >= 0))
    ranks = np.full(len(ops), MISSING, np.int64)
    if not len(nodes):
        found = rank_framework_operators(index)
        host_ns, counts = found.host_ns.tolist(), found.counts.tolist()
        totals = dict(zip(found.names, zip(host_ns, counts, strict=True), strict=True))
        return Operators(found.names, found.ranks, found.label, totals)
    if index.is_device_work.any():
        time = index.op_device_time.total(nodes)
    else:
        time = host_times(ops)[nodes]
    contains_nodes = np.zeros(len(ops), np.bool_)
    enclosing = index.tree.nearest_ancestor(is_node)[index.tree.parent[nodes]]
    contains_nodes[enclosing[(enclosing >= 0) & (index.tree.parent[nodes] >= 0)]] = True
    codes = op_type.codes[nodes].astype(np.int64)
    total = sum_by_group(codes, np.where(contains_nodes[nodes], 0, time), len(op_type.categories))
    used = np.unique(codes)
    order = used[np.argsort(-total[used], kind="stable")]
    rank_of_code = np.full(len(op_type.categories), MISSING, np.int64)
    rank_of_code[order] = np.arange(len(order))
    ranks[nodes] = rank_of_code[codes]
    return Operators(tuple(op_type.categories[code] for code in order.tolist()), ranks)
