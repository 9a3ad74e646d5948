"""The events of a Chrome trace, written one by one with `json.dumps`.

The reference for the content of the exporter's traces, and its peer in the benchmark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.exporters.activity_tracks import ActivityTracks


def slices_and_arrows(profile: ProfileData, tracks: ActivityTracks) -> Iterator[dict[str, Any]]:
    """Yield the events of ops, API calls and activities, and the arrows between them."""
    for op in rows(profile, "ops"):
        if op["status"] == "earlier":
            continue
        args = op["args"] and json.loads(op["args"], parse_constant=str)
        more = {"op_id": op["op_id"], "line": op["line"], "count": op["count"], "args": args}
        what = {"pid": 1, "tid": op["thread_id"], "cat": op["op_type"] or "(unnamed)",
                "name": op["name"] or "(unnamed)"}  # fmt: skip
        length = max(op["end_ns"] - op["start_ns"], 0)
        if op["count"] <= 1 and (op["suspended_ns"] or 0) == 0:
            yield {"ph": "X", "ts": us(op["start_ns"]), "dur": us(length), **what, "args": more}
        else:
            pair = {"id": f"op {op['op_id']}", **what}
            yield {"ph": "b", "ts": us(op["start_ns"]), **pair, "args": more}
            yield {"ph": "e", "ts": us(op["start_ns"] + length), **pair}
    started = {}
    for call in rows(profile, "api_calls"):
        started.setdefault(call["correlation_id"], call)
        length = max(call["end_ns"] - call["start_ns"], 0)
        more = {"correlation_id": call["correlation_id"]}
        if call["return_value"] is not None:
            more["return_value"] = call["return_value"]
        yield {
            "ph": "X", "pid": 1, "tid": call["thread_id"], "ts": us(call["start_ns"]),
            "dur": us(length), "cat": "api", "name": call["name"], "args": more,
        }  # fmt: skip
    for i, activity in enumerate(rows(profile, "activities")):
        track = {"pid": int(tracks.process[i]), "tid": int(tracks.thread[i])}
        more = {name: activity[name] for name in ("correlation_id", "op_id")}
        if activity["kind"] == "kernel":
            more |= {of: [activity[f"{of}_{axis}"] for axis in "xyz"] for of in ("grid", "block")}
        else:
            more["bytes"] = activity["bytes"]
        length = max(activity["end_ns"] - activity["start_ns"], 0)
        yield {
            "ph": "X", **track, "ts": us(activity["start_ns"]), "dur": us(length),
            "cat": activity["kind"], "name": activity["name"], "args": more,
        }  # fmt: skip
        call = started.get(activity["correlation_id"] or -1)
        if call is not None and activity["kind"] != "synchronization":
            both = {"id": i, "cat": "launch", "name": "launch"}
            source = {"pid": 1, "tid": call["thread_id"]}
            yield {"ph": "s", **source, "ts": us(call["start_ns"]), **both}
            yield {"ph": "f", "bp": "e", **track, "ts": us(activity["start_ns"]), **both}


def rows(profile: ProfileData, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table; missing values are None."""
    table = profile.tables[name]
    columns = {}
    for column in table.schema.columns:
        if column.kind in ("name", "args"):
            columns[column.name] = table.names(column.name).to_list()
        else:
            values = table[column.name].tolist()
            missing = column.kind == "id"
            columns[column.name] = [None if missing and v == -1 else v for v in values]
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def us(ns: int) -> float:
    """Return microseconds to the nanosecond."""
    return round(ns / 1000, 3)
