"""Costs of recording on a machine: what an event takes longer than without the profiler, ns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LAUNCH, HOST_LAUNCH, GRAPH_NODE, STACK_FRAME, OP, STATEMENT, MODULE, OPERATOR = KINDS = (
    "launch", "host_launch", "graph_node", "stack_frame", "op", "statement", "module", "operator",
)  # fmt: skip
"""Kinds of events: a call of a GPU's API and of the host device, a node of a graph that is
replayed, a frame of the Python stack at a launch, an op such as a range, a statement of a cell, a
call of a module of PyTorch, and a PyTorch operator (``--detail operators``)."""
_MAX_NS = 1e6


def costs_of(info: Mapping[str, Any]) -> dict[str, float]:
    """Return the costs in a profile's info, by kind; empty if there are none.

    Examples
    --------
    >>> costs_of({"recording_costs": {"launch": 700.0, "op": -1, "other": 3}})
    {'launch': 700.0}
    """
    return checked_costs(info.get("recording_costs"))


def checked_costs(given: object) -> dict[str, float]:
    """Return the possible costs among values that may be anything."""
    if not isinstance(given, dict):
        return {}
    return {
        kind: float(given[kind])
        for kind in KINDS
        if isinstance(given.get(kind), int | float) and 0 <= given[kind] <= _MAX_NS
    }
