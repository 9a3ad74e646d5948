"""Verdicts on the ops of a comparison, and the causes of their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.compare.significance import CHANGED
from epprof_nb.util.format import in_backticks, plural, signed_duration, signed_percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from epprof_nb.analysis.base.result_table import ResultTable

    Values = Mapping[str, Any]

OWN, DEVICE, HOST, WAITS = "", "device time", "host time", "waits for the device"
"""Causes of the change of an op: its own elapsed time, the device time of its work, its time on
other threads, or the device time of another op's work."""
LEAST_SHARE = 0.01
"""Minimum share of a change, or of the time of an op, in a repeat to be named as a cause."""
MAX_NAMED = 3
"""Maximum number of ops or lines that a sentence names."""


def rows_of(table: ResultTable) -> Iterator[Values]:
    """Yield the values of each row by column."""
    names = table.columns
    columns = (table.values(name) for name in names)
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def cause(row: Values) -> tuple[str, str]:
    """Return the verdict on an op, and the cause of its change.

    This is the verdict on the elapsed time, unless the device time causes the change or the elapsed
    time cannot be tested.

    Parameters
    ----------
    row
        Values of a row of ``compare_ops``.
    """
    if row["status"] in ("added", "removed"):
        return row["verdict"], OWN
    on_elapsed, of_device = row["elapsed_verdict"], row["device_contribution_ns"] or 0
    own = row["contribution_ns"] - of_device
    measure = DEVICE if row["measure"] == "device" else HOST
    if on_elapsed == "not tested":
        return row["verdict"], measure
    is_clear_on_device = abs(of_device) > abs(own) or on_elapsed not in CHANGED
    if measure == DEVICE and is_clear_on_device and row["verdict"] in CHANGED:
        return row["verdict"], DEVICE
    if on_elapsed in CHANGED and of_device * own < 0 and 2 * abs(of_device) >= abs(own):
        return on_elapsed, WAITS
    return on_elapsed, OWN


def largest_contributions(ops: ResultTable, before_ns: float, after_ns: float) -> str:
    """Return a sentence with the ops that changed the elapsed time most.

    Parameters
    ----------
    ops
        A table ``compare_ops``.
    before_ns, after_ns
        Elapsed time of a repeat.
    """
    least = LEAST_SHARE * max(before_ns, after_ns)
    found = [
        row for row in rows_of(ops)
        if abs(row["contribution_ns"]) >= least and cause(row)[0] in (*CHANGED, "added", "removed")
    ]  # fmt: skip
    return _named([(row["path"], _contribution(row)) for row in found])


def _contribution(row: Values) -> str:
    text = signed_duration(row["contribution_ns"])
    return f"{text} ({row['status']})" if row["status"] in ("added", "removed") else text


def largest_device_changes(ops: ResultTable, before_ns: float, after_ns: float) -> str:
    """Return a sentence with the innermost ops whose device times differ most.

    For the parameters, see `largest_contributions`.
    """
    sides = (("before_ns", before_ns), ("after_ns", after_ns))
    rows = [
        row for row in rows_of(ops)
        if row["verdict"] in CHANGED
        and any((row[name] or 0) >= LEAST_SHARE * of_repeat for name, of_repeat in sides)
    ]  # fmt: skip
    rows.sort(key=lambda row: -abs(row["after_ns"] - row["before_ns"]))
    # An op that contains a changed op has changed because of it.
    above = {parent for row in rows for parent in _paths_above(row["path"])}
    return _named(
        [(r["path"], signed_percent(r["change"])) for r in rows if r["path"] not in above]
    )


def _named(changes: list[tuple[str, str]]) -> str:
    if not changes:
        return ""
    shown = [f"{in_backticks(path, 60)} {change}" for path, change in changes[:MAX_NAMED]]
    rest = len(changes) - MAX_NAMED
    more = f" and {plural(rest, 'more op')}" if rest > 0 else ""
    return f"Changed: {', '.join(shown)}{more}. "


def _paths_above(path: str) -> list[str]:
    parts = path.split(" / ")
    return [" / ".join(parts[:end]) for end in range(1, len(parts))]
