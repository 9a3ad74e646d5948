"""``epprof ep parity``: which operators other execution providers have beyond ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from epprof_nb.core.ort_binding import PROVIDER

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

_ORDER = ("same", "types", "missing", "only here")
_MEANINGS = {
    "same": "the types of the other providers, or more",
    "types": "a kernel, but not for all types of the other providers",
    "missing": "no kernel",
    "only here": "no other provider has a kernel",
}


def describe(table: pd.DataFrame, *, every: bool) -> Iterator[str]:
    """Yield the lines of the report.

    Parameters
    ----------
    table
        Result of `epprof_nb.ep.parity`.
    every
        Whether to list all rows; else those with types or kernels that are missing.
    """
    others = [c for c in table.columns if c.endswith("ExecutionProvider") and c != PROVIDER]
    yield f"{PROVIDER} compared with {', '.join(others) or 'no other provider'}"
    yield ""
    counts = table["status"].value_counts()
    for status in _ORDER:
        operators = table.loc[table["status"] == status, ["domain", "op_type"]].drop_duplicates()
        yield (
            f"{status:<10} {counts.get(status, 0):5d} opset ranges of {len(operators):4d} "
            f"operators: {_MEANINGS[status]}"
        )
    for status in _ORDER if every else ("types", "missing"):
        rows = table[table["status"] == status]
        if len(rows):
            yield ""
            yield f"{status}:"
            yield from (f"  {line}" for line in _lines(rows, others))
    limited = table[table["limits"] != ""]
    if len(limited):
        yield ""
        yield "nodes left to other providers, by operator:"
        for row in limited.to_dict("records"):
            yield f"  {_name(row)}  {row['limits']}"


def _lines(rows: pd.DataFrame, others: list[str]) -> Iterator[str]:
    for row in rows.to_dict("records"):
        has = [other for other in others if isinstance(row[other], str)]
        what = row["missing"] or (", ".join(has) if row["status"] == "missing" else "")
        yield _name(row) + (f"  {what}" if what else "")


def _name(row: Mapping[Hashable, Any]) -> str:
    name = f"{row['domain']}.{row['op_type']}" if row["domain"] else row["op_type"]
    end = "+" if pd.isna(row["last_opset"]) else f"-{row['last_opset']}"
    return f"{name} {row['first_opset']}{end}"
