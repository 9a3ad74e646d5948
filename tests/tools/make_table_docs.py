"""Write ``docs/tables.md``, the columns of every table, from `epprof_nb.data.result_columns`.

    python -m tests.tools.make_table_docs

Run it after changing a column or its description; `test_result_columns.py` compares the file.
"""

from __future__ import annotations

from epprof_nb.data.result_columns import TABLES
from tests.paths import ROOT

OUTPUT = ROOT / "docs" / "tables.md"

_HEAD = """# Tables

Every table is a pandas DataFrame with the same columns and dtypes, empty or not. Times are integer
nanoseconds on one clock and count from the start of the profile. Missing ids are `<NA>`, missing
names `NaN`.

A value that was not measured is missing, not 0. Traces of tools that record no device, or that do
not name the op of a kernel, have no device times of ops: their columns are `Int64`, or `float64`
with `NaN`, in the rows of ops. Waits are missing where a trace has no API calls, and the time in
which work without a record may have run is missing in all traces, which do not count such records.

Columns of the breakdowns are *inclusive*, of an op and all ops below it, unless their name begins
with `self_`. Inclusive times of nested ops overlap; self times add up to the device time of the
profile.

This page is generated from `epprof_nb/data/result_columns/` by `tests/tools/make_table_docs.py`.
"""


def markdown() -> str:
    """The text of the page."""
    parts = [_HEAD]
    for table in TABLES.values():
        parts.append(f"## `{table.call}`\n\n{table.rows}\n")
        lines = ["| column | dtype | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| `{c.name}` | {c.dtype} | {c.unit} | {c.meaning} |" for c in table.columns]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    OUTPUT.write_text(markdown(), encoding="utf-8")
