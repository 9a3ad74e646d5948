"""Finding on the time that import statements take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.findings.finding import Finding, capitalised, is_cell, op_id_of, place_name
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_IMPORT = re.compile(r"import\s|from\s+\S+\s+import\b")
_IN_CELL = "Import in an earlier cell: a Jupyter kernel loads a module once."
_IN_SCRIPT = (
    "`python -X importtime` lists the modules that take long. Import what only some runs need in "
    "the function that needs it."
)


def imports(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the import statements."""
    ops, rows = index.profile.tables["ops"], index.cached(import_statements)
    if not len(rows):
        return
    starts, ends = ops["start_ns"][rows], ops["end_ns"][rows]
    total = int(ops["duration_ns"][rows].sum())
    longest = int(rows[int(ops["duration_ns"][rows].argmax())])
    most = f", most of all {place_name(index, longest)}" if len(rows) > 1 else ""
    subject = "Imports" if len(rows) > 1 else capitalised(place_name(index, longest))
    yield Finding(
        f"{subject} took {duration(total)}{most}.",
        total,
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="import",
        remedy=_IN_CELL if is_cell(index.profile.info) else _IN_SCRIPT,
        op_id=op_id_of(index, longest),
        table="ops",
        rows=lambda: rows,
        spans=lambda: (starts, ends),
    )


def import_statements(index: ProfileIndex) -> IntArray:
    """Return the rows of the import statements that are not inside another one."""
    ops = index.profile.tables["ops"]
    names = ops.names("name")
    of_name = np.array([bool(_IMPORT.match(name)) for name in names.categories] + [False])
    is_import = of_name[names.codes] & (ops["line"] != MISSING) & has_host_time(ops)
    inside = np.append(index.tree.nearest_ancestor(is_import), MISSING)[index.tree.parent]
    return np.flatnonzero(is_import & (inside == MISSING))
