"""Descriptions of one column and of one table, and the columns that several tables share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epprof_nb.data import schema

_DTYPES: dict[schema.Kind, str] = {
    "time": "int64", "int": "int64", "id": "Int64", "row": "Int32", "delta": "Int64",
    "name": "category", "bool": "bool", "args": "object",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnDoc:
    """One column: its name, pandas dtype, unit (empty for none) and meaning."""

    name: str
    dtype: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TableDoc:
    """One table: the call that returns it, the meaning of a row, and its columns in order."""

    call: str
    rows: str
    columns: tuple[ColumnDoc, ...]


def column(name: str, dtype: str, meaning: str, unit: str | None = None) -> ColumnDoc:
    """Return a description; without `unit`, the suffix of the name determines it."""
    if unit is None:
        unit = "ns" if name.endswith("_ns") else "bytes" if name.endswith("bytes") else ""
    return ColumnDoc(name, dtype, unit, meaning)


INCLUSIVE = "of the op and all ops below it"
SHARED = {
    shared.name: shared
    for shared in (
        column("name", "category", "name of the op"),
        column("op_type", "category", "cell, line, range, or an ONNX operator"),
        column("cell", "category", "cell of a statement, such as In[3]; missing for other ops"),
        column("line", "Int64", "first line of a statement in its cell, from 1"),
        column("arg_<name>", "by value", "value of the argument; missing if the op has none"),
        column("count", "int64", "executions"),
        column("device_ns", "int64", f"inclusive: device time {INCLUSIVE}"),
        column("self_device_ns", "int64", "self: device time of work that the op itself launched"),
        column("share", "float64", "`device_ns` / all device time", "fraction"),
        column("kernels", "int64", f"inclusive: kernels {INCLUSIVE}"),
        column("memcpys", "int64", f"inclusive: copies {INCLUSIVE}"),
        column("memsets", "int64", f"inclusive: memsets {INCLUSIVE}"),
        column("bytes", "int64", "inclusive: bytes that these copied and set"),
        column(
            "bandwidth", "float64", "bytes copied / time of the copies; NaN without copies",
            "bytes/s",
        ),
        column(
            "launch_delay_ns", "Int64",
            "mean time from a kernel's API call to its start; missing if no call was recorded",
        ),
        column(
            "mean_device_ns", "Int64",
            "mean of the inclusive device time of an execution; missing without executions",
        ),
        column("p95_device_ns", "Int64", "its 95th percentile, a measured time; likewise"),
        column("host_ns", "int64", f"inclusive: host time {INCLUSIVE}"),
        column("self_host_ns", "int64", "self: host time without the ops below on its thread"),
        column("mean_host_ns", "int64", "mean of the inclusive host time of an execution"),
        column("p50_host_ns", "int64", "its median, a measured time"),
        column("p95_host_ns", "int64", "its 95th percentile, a measured time"),
        column("device_id", "Int64", "device, as in `activities`"),
        column("provider", "category", "execution provider that ran it"),
        column("session", "Int64", "ONNX Runtime session, as in `ops`"),
    )
}  # fmt: skip


def columns(*items: str | ColumnDoc, **meanings: str) -> tuple[ColumnDoc, ...]:
    """Return columns from descriptions or names of shared columns; `meanings` replaces some."""
    found = [SHARED[item] if isinstance(item, str) else item for item in items]
    return tuple(replace(c, meaning=meanings[c.name]) if c.name in meanings else c for c in found)


def of_statements(*names: str, **meanings: str) -> tuple[ColumnDoc, ...]:
    """Return columns that only statements have: Int64, missing in other rows."""
    return tuple(replace(c, dtype="Int64") for c in columns(*names, **meanings))


def measured(*names: str) -> tuple[ColumnDoc, ...]:
    """Return columns of host time: Int64, missing if no execution was measured."""
    return tuple(
        replace(c, dtype="Int64", meaning=f"{c.meaning}; missing if none was measured")
        for c in columns(*names)
    )


def of_schema(table: schema.TableSchema) -> TableDoc:
    """Return a stored table. Columns that are derived from another one follow it."""
    found: list[ColumnDoc] = []
    for stored in table.columns:
        found.append(column(stored.name, _DTYPES[stored.kind], stored.doc))
        found += [
            column(derived.name, _DTYPES["name"], derived.doc)
            for derived in table.derived
            if derived.source == stored.name
        ]
    return TableDoc(f"prof.{table.name}", table.rows, tuple(found))


DEVICE = ("device_ns", "self_device_ns", "share", "kernels", "memcpys", "memsets", "bytes",
           "bandwidth", "launch_delay_ns", "mean_device_ns", "p95_device_ns")  # fmt: skip
PLACE_IN_STACK = (
    column("cell", "category", "cell of the line, as In[3], or file"),
    column("line", "Int64", "line in the cell or file, from 1; of a statement, its first"),
    column("source", "object", "text of the line"),
    column("function", "category", "function of the line, if it is in a Python stack"),
)
PLACE_COLUMNS = (
    column("name", "category", "text of the statement, or name of the op; missing without an op"),
    SHARED["cell"],
    SHARED["line"],
    column("op_id", "Int64", "op of its first execution"),
)  # fmt: skip
