"""Hand-made profiles: a row is a dict of the columns that matter to the test."""

from __future__ import annotations

import json

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, MISSING, OPS
from epprof_nb.data.table import FILL, Table
from epprof_nb.profiles import Profile


def op(op_id, name, start, end, parent=MISSING, **more):
    row = {"op_id": op_id, "name": name, "start_ns": start, "end_ns": end, "parent_op_id": parent}
    defaults = {"op_type": "range", "thread_id": 1, "count": 1, "status": "complete"}
    return defaults | row | {"duration_ns": end - start} | more


def line(op_id, number, start, end, parent=MISSING, cell="In[1]", **more):
    more = {"op_type": "line", "cell": cell, "line": number} | more
    return op(op_id, more.pop("name", f"line {number}"), start, end, parent, **more)


def activity(kind, start, end, op_id=MISSING, **more):
    row = {"kind": kind, "name": kind, "start_ns": start, "end_ns": end, "op_id": op_id}
    return {"device_id": 0, "stream_id": 7} | row | {"duration_ns": end - start} | more


def kernel(start, end, op_id=MISSING, **more):
    return activity("kernel", start, end, op_id, **more)


def call(start, end, thread_id=1, **more):
    row = {"start_ns": start, "end_ns": end, "thread_id": thread_id, "duration_ns": end - start}
    return {"name": "cuLaunchKernel"} | row | more


def table(schema, rows):
    columns = {}
    for column in schema.columns:
        if not any(column.name in row for row in rows):
            continue
        values = [row.get(column.name) for row in rows]
        if column.kind == "name":
            columns[column.name] = CategoryColumn.of(values)
        elif column.kind == "args":
            columns[column.name] = CategoryColumn.of(
                [None if v is None else json.dumps(v) for v in values]
            )
        else:
            missing = FILL[column.kind]
            columns[column.name] = np.array([missing if v is None else v for v in values], np.int64)
    return Table(schema, columns)


def profile(ops=(), activities=(), api_calls=(), *, info=None, sources=None):
    tables = {
        "ops": table(OPS, ops),
        "activities": table(ACTIVITIES, activities),
        "api_calls": table(API_CALLS, api_calls),
    }
    return Profile(tables, info, sources)


def nested():
    """A cell with a loop of two rounds; in it a statement with a range."""
    return profile(
        ops=[
            op(1, "In[1]", 0, 1000, op_type="cell"),
            line(2, 1, 0, 900, 1),
            line(3, 2, 10, 110, 2),
            op(4, "attention", 20, 80, 3),
            line(5, 2, 210, 310, 2),
            op(6, "attention", 220, 280, 5),
        ],
        activities=[
            kernel(30, 60, 4, correlation_id=1),
            kernel(240, 280, 6, correlation_id=2),
            activity("memcpy", 300, 310, 5, bytes=1024),
            activity("memset", 320, 325, 2, bytes=64),
            activity("synchronization", 0, 900, 2),
            kernel(400, 407),
        ],
        api_calls=[call(20, 22, correlation_id=1), call(220, 222, correlation_id=2)],
        sources={"In[1]": "for batch in batches:\n    y = model(batch)\n"},
    )


def rows(frame, key="name"):
    """The frame as {key: row}; each key occurs once."""
    records = frame.to_dict("records")
    found = {record[key]: record for record in records}
    assert len(found) == len(records)
    return found
