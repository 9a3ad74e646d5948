"""Nodes that a session leaves to other providers, and messages that say why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.ep import wheel_kernels

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_NODE = "(no node has this name)"
"""A name for ``nodes=`` with which a provider takes no node, on purpose."""

_SHOWN = 5


class Unclaimed(NamedTuple):
    """A node that another provider is to take."""

    name: str
    op_type: str
    domain: str
    reason: str
    """The limit of its kernel that the node is beyond; empty: it has none, or is not selected."""

    def __str__(self) -> str:
        described = f"{self.name or '(no name)'} ({self.op_type})"
        return f"{described}: {self.reason}" if self.reason else described


def of_last_session() -> list[Unclaimed]:
    """Return the nodes of the session that this thread created last."""
    return [Unclaimed(*node) for node in _native.ep_unclaimed_nodes()]


def needs_all_nodes(nodes: list[Unclaimed]) -> str:
    """Return the message for a session that is to capture graphs, and leaves nodes to others."""
    shown = ", ".join(map(str, nodes[:_SHOWN]))
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    types = ", ".join(sorted({node.op_type for node in nodes}))
    return (
        f"A graph can be captured only if all nodes run on the provider. These do not: "
        f"{shown}{more}. Define kernels for {types} with @epprof_nb.ep.kernel, or leave "
        "enable_cuda_graph out."
    )


def note(nodes: list[Unclaimed]) -> str | None:
    """Return what to add to the error of a session that could not be created.

    Parameters
    ----------
    nodes
        Nodes that the session leaves to other providers.

    Returns
    -------
    note
        Nodes beyond the limits of their kernels, which may be why there is no session. None if
        there are none.
    """
    beyond = [node for node in nodes if node.reason]
    if not beyond:
        return None
    lines = ["Nodes that kernels in Python leave to other providers:"]
    for node in beyond[:_SHOWN]:
        others = wheel_kernels.providers_with(node.op_type, node.domain)
        lines.append(f"  {node}" + (f" (kernels: {', '.join(others)})" if others else ""))
    if len(beyond) > _SHOWN:
        lines.append(f"  and {len(beyond) - _SHOWN} more")
    lines.append(
        "Name a provider that has a kernel in providers=, or define one with @epprof_nb.ep.kernel."
    )
    return "\n".join(lines)


def unmatched() -> str | None:
    """Return a warning about the selection of the session that this thread created last.

    Returns
    -------
    warning
        Names in ``only=`` and ``nodes=`` that no node of its model has. None if there are none.
    """
    types, nodes = _native.ep_unmatched()
    return unmatched_among(types, nodes)


def unmatched_among(types: Iterable[str], nodes: Iterable[str]) -> str | None:
    """Return a warning that no node has these types and names; None if there are none.

    Examples
    --------
    >>> unmatched_among([], ["layer9/fc1"])[:39]
    "nodes=: the model has no 'layer9/fc1'. "
    """
    missing = {"only": sorted(types), "nodes": sorted(set(nodes) - {NO_NODE})}
    texts = []
    for option, names in missing.items():
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            shown = ", ".join(map(repr, names[:_SHOWN]))
            texts.append(f"{option}=: the model has no {shown}{more}.")
    if not texts:
        return None
    return (
        f"{' '.join(texts)} The provider selects from the nodes that ONNX Runtime's basic graph "
        "optimizations leave; epprof_nb.ep.verify() lists their names and types."
    )
