"""Totals that a page embeds, because it does not have every event: by time bin and by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.analysis.breakdowns.by_range import NO_NAME
from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.views.queries.event_groups import event_groups
from epprof_nb.views.queries.string_table import StringTable

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel


def page_totals(view_model: ViewModel) -> tuple[dict[str, Any], dict[str, IntArray]]:
    """Return the header and the columns of the totals.

    Returns
    -------
    header
        ``bins``: ``kinds`` and ``names``, to which the groups of the sums refer, and ``devices``;
        None if a single bin has too many names. ``groups``: see
        `epprof_nb.views.queries.event_groups.event_groups`.
    columns
        ``bins.edges``, ``bins.busy.<position of the device>`` and the other columns of
        `epprof_nb.analysis.breakdowns.bin_sums.BinSums`; ``group.<prefix>.<column>``.
    """
    groups, group_columns = event_groups(view_model)
    columns = {f"group.{name}": values for name, values in group_columns.items()}
    sums = view_model.bin_sums
    if sums is None:
        return {"bins": None, "groups": groups}, columns
    tables, strings = view_model.profile.tables, StringTable()
    for name, codes, names, missing in (
        ("op", sums.op, tables["ops"].names("name"), NO_OP),
        ("name", sums.name, tables["activities"].names("short_name"), NO_NAME),
    ):
        encoded = strings.encode(name, codes, names.categories)
        none = strings.index.setdefault(missing, len(strings.index))
        columns[f"bins.{name}"] = np.where(codes < 0, none, encoded)
    fields = ("edges", "kind", "bin", "group", "started", "running", "started_bytes",
              "running_bytes", "ns")  # fmt: skip
    columns |= {f"bins.{name}": getattr(sums, name) for name in fields}
    columns |= {
        f"bins.busy.{at}": busy.astype(np.int64) for at, busy in enumerate(sums.busy.values())
    }
    bins = {"kinds": ACTIVITY_KINDS, "names": list(strings.index), "devices": list(sums.busy)}
    return {"bins": bins, "groups": groups}, columns
