"""Names of what frameworks ran (operators, modules, functions), ranked by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.analysis.base.op_totals import self_host_ns
from epprof_nb.analysis.frameworks.training_phases import MODULE_TYPES, is_framework_op, is_of_type
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


class FrameworkOperators(NamedTuple):
    """Names that group the ops of frameworks.

    Attributes
    ----------
    label
        The kind of name: "operator" if operators were recorded, else "module" (for the class of a
        module), "function", or "op" in traces without frameworks.
    names
        The names, those with the most time first.
    ranks
        int64 array, one value per op: the position of its name in `names`; `MISSING` for none.
    host_ns, counts
        int64 arrays, one value per name: host time without other names below it, and executions.
    """

    label: str
    names: tuple[str, ...]
    ranks: IntArray
    host_ns: IntArray
    counts: IntArray


def rank_framework_operators(index: ProfileIndex) -> FrameworkOperators:
    """Return the names by device time, or by host time if no device work was recorded."""
    ops, tree = index.profile.tables["ops"], index.tree
    label, rows, codes, names = _named(index)
    groups = np.full(len(ops), MISSING, np.int64)
    groups[rows] = codes
    n = len(names)
    if not n:
        none = np.empty(0, np.int64)
        return FrameworkOperators(label, (), groups, none, none)
    nearest = tree.nearest_ancestor(groups >= 0)
    above = np.append(nearest, MISSING)[tree.parent]
    host_ns = sum_by_group(groups, self_host_ns(ops, np.where(groups >= 0, above, MISSING)), n)[:n]
    counts = sum_by_group(groups, np.where(ran(ops), ops["count"], 0), n)[:n]
    time = host_ns
    if index.is_device_work.any():
        total = index.op_device_time.total()
        own = total - sum_by_group(tree.parent, total, len(ops))[: len(ops)]
        time = sum_by_group(np.append(groups, MISSING)[nearest], own, n)[:n]
    order = np.argsort(-time, kind="stable")
    rank = np.full(n + 1, MISSING, np.int64)
    rank[order] = np.arange(n)
    return FrameworkOperators(
        label, tuple(names[code] for code in order.tolist()), rank[groups],
        host_ns[order], counts[order],
    )  # fmt: skip


def _named(index: ProfileIndex) -> tuple[str, IntArray, IntArray, list[str]]:
    """Return the label, the rows of the ops with a name, its code, and the names by code."""
    ops = index.profile.tables["ops"]
    op_type = ops.names("op_type")
    # Operators of traces have the category of their library.
    is_operator = ops.names("category").equals("operator") | op_type.equals("operator")
    is_framework = is_framework_op(index)
    if is_operator.any():
        label, is_named = "operator", is_operator
    elif is_framework.any() or index.is_device_work.any():
        label, is_named = "function", is_framework
    else:
        is_other = np.isin(op_type.categories, ("cell", "line", "gc"))
        label, is_named = "op", ~np.append(is_other, np.False_)[op_type.codes]
    texts = ops.names("name")
    rows = np.flatnonzero(is_named & (texts.codes >= 0) & ~texts.equals(""))
    codes, names = texts.codes[rows].astype(np.int64), list(map(str, texts.categories))
    is_module = is_of_type(index, *MODULE_TYPES)[rows]
    if is_module.any() and label == "function":
        label = "module"
        of_class = arguments(ops.names("args"), rows, ["class"])[0]
        has_class = is_module & (of_class.codes >= 0)
        codes = np.where(has_class, of_class.codes + len(names), codes)
        names += map(str, of_class.distinct)
    known, codes = np.unique(codes, return_inverse=True)
    return label, rows, codes, [names[code] for code in known.tolist()]
