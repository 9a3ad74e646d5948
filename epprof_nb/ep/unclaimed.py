"""Nodes that a session leaves to other providers, and messages with the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.ep import wheel_kernels
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.util.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_NODE = "(no node has this name)"
"""A name for ``nodes=`` with which a provider deliberately takes no node."""

_SHOWN = 5
_SELECTION = (
    "The provider selects from the nodes that ONNX Runtime's basic graph optimizations leave; "
    "epprof_nb.ep.verify() lists their names and types."
)


class Unclaimed(NamedTuple):
    """A node for another provider."""

    name: str
    op_type: str
    domain: str
    reason: str
    """The limit of the kernel that the node exceeds; empty without a kernel, or if not selected."""

    def __str__(self) -> str:
        described = f"{self.name or '(no name)'} ({self.op_type})"
        return f"{described}: {self.reason}" if self.reason else described


def of_last_session() -> list[Unclaimed]:
    """Return the nodes of the session that this thread created last."""
    return [Unclaimed(*node) for node in _native.ep_unclaimed_nodes()]


def needs_all_nodes(nodes: list[Unclaimed], *, selected: bool) -> str:
    """Return the message for a session that should capture graphs but leaves nodes to others.

    Parameters
    ----------
    nodes
        The nodes.
    selected
        Whether ``only=`` or ``nodes=`` excluded nodes, which may have a kernel.
    """
    shown = ", ".join(map(str, nodes[:_SHOWN]))
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    known = {(k.declaration.op_type, k.declaration.domain) for k in REGISTRY.kernels()}
    left_out = [node for node in nodes if selected and not node.reason and node[1:3] in known]
    types = sorted({node.op_type for node in nodes if node not in left_out})
    remedies = [
        *(["leave only= or nodes= out"] if left_out else []),
        *([f"define kernels for {', '.join(types)} with @epprof_nb.ep.kernel"] if types else []),
    ]
    remedy = " and ".join(remedies)
    return (
        f"A graph can be captured only if all nodes run on the provider. These do not: "
        f"{shown}{more}. {remedy[0].upper()}{remedy[1:]}, or leave enable_cuda_graph out."
    )


def note(nodes: list[Unclaimed]) -> str | None:
    """Return a note for the error of a session that could not be created.

    Parameters
    ----------
    nodes
        Nodes that the session leaves to other providers.

    Returns
    -------
    note
        Nodes beyond the limits of their kernels, a possible cause of the error. None if there are
        no such nodes.
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


def unmatched() -> tuple[list[str], list[str]]:
    """Return the selections that the model of this thread's last session lacks.

    Returns
    -------
    types, nodes
        Types of ``only=`` and names of ``nodes=`` that no node has.
    """
    types, nodes = _native.ep_unmatched()
    return sorted(types), sorted(set(nodes) - {NO_NODE})


def without_nodes(types: list[str]) -> str | None:
    """Return a warning about types of ``only=`` that no node has; None if there are none.

    Such types may be intended, because one list of types can serve several models.

    Examples
    --------
    >>> without_nodes(["Gelu"])[:36]
    "only=: the model has no 'Gelu' node."
    """
    if not types:
        return None
    return f"only=: the model has no {_listed(types)} node. {_SELECTION}"


def misspelt(names: Iterable[str], known: Iterable[str]) -> str | None:
    """Return an error about names of ``nodes=`` that are not `known`; None if all are.

    Examples
    --------
    >>> misspelt(["layer9/fc"], ["layer1/fc", "layer1/act"])[:66]
    "nodes=: the model has no node 'layer9/fc'; did you mean 'layer1/fc"
    """
    candidates = sorted(set(known))
    missing = sorted({*names} - {*candidates} - {NO_NODE})
    if not missing:
        return None
    question = did_you_mean(missing[0], candidates)
    meant = f"; {question}" if question else "."
    return f"nodes=: the model has no node {_listed(missing)}{meant} {_SELECTION}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
