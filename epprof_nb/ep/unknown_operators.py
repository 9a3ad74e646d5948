"""Reasons why ONNX Runtime does not load a model with operators that kernels declare."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epprof_nb.ep import operator_schemas
from epprof_nb.ep.kernel import REGISTRY

if TYPE_CHECKING:
    from epprof_nb.ep.declaration import Declaration

_SHOWN = 5
_UNKNOWN = (
    re.compile(r"Fatal error: (?P<domain>\S*):(?P<op_type>\w+)\(-?\d+\) is not a registered"),
    re.compile(r"No Op registered for (?P<op_type>\w+) with domain_version"),
)
_MISUSED = (
    re.compile(r"with schema\((?P<domain>\S*)::(?P<op_type>\w+):\d+\)"),
    re.compile(r"of operator \((?P<op_type>\w+)\) in node"),
)


def note(message: str) -> str | None:
    """Return a note for ONNX Runtime's message about a model that it does not load.

    Parameters
    ----------
    message
        The message.

    Returns
    -------
    note
        How to define the missing operator, or how its kernel declares it. None if the message names
        no such operator.

    Examples
    --------
    >>> print(note("Fatal error: com.example:Twice(-1) is not a registered function/op"))
    No kernel declares the operator Twice of domain 'com.example'. Define one with
    @epprof_nb.ep.kernel('Twice', domain='com.example') before the session is created.
    """
    declared = [kernel.declaration for kernel in REGISTRY.of_domains_without_schema()]
    for pattern in _UNKNOWN:
        if found := pattern.search(message):
            return _unknown(found["op_type"], found.groupdict().get("domain", ""), declared)
    for pattern in _MISUSED:
        if found := pattern.search(message):
            domain = found.groupdict().get("domain")
            return _misused(found["op_type"], domain, declared)
    return None


def _unknown(op_type: str, domain: str, declared: list[Declaration]) -> str:
    others = [d for d in declared if d.op_type == op_type]
    if domain in {d.domain for d in others}:
        return (
            f"The kernel of {op_type} was defined after the device was added to these "
            "SessionOptions. Create new ones, and add the device to them."
        )
    if others:
        node = f"the node has domain {domain!r}" if domain else "the node has no domain"
        return (
            f"There is a kernel of {op_type} in domain {others[0].domain!r}, but {node}. Give both "
            "the same domain."
        )
    if versions := operator_schemas.versions(op_type, domain):
        return (
            f"{op_type} exists since opset {versions[0].since_version}. Export the model with that "
            "opset or a newer one."
        )
    if not domain:
        return (
            "A kernel can declare an operator that ONNX does not have, in a domain of its own: "
            f"@epprof_nb.ep.kernel({op_type!r}, domain=...), with the same domain in the model."
        )
    known = sorted({d.op_type for d in declared if d.domain == domain})
    more = ", ..." if len(known) > _SHOWN else ""
    listed = f"\nOperators with a kernel in this domain: {', '.join(known[:_SHOWN])}{more}."
    return (
        f"No kernel declares the operator {op_type} of domain {domain!r}. Define one with\n"
        f"@epprof_nb.ep.kernel({op_type!r}, domain={domain!r}) before the session is created."
        f"{listed if known else ''}"
    )


def _misused(op_type: str, domain: str | None, declared: list[Declaration]) -> str | None:
    for declaration in declared:
        operator = declaration.operator
        if operator is None or declaration.op_type != op_type:
            continue
        if domain not in (None, declaration.domain):
            continue
        inputs = [f"{name} (optional)" if optional else name for name, optional in operator.inputs]
        types = [f"{name} is {' or '.join(allowed)}" for name, allowed in operator.named]
        return (
            f"The kernel of {op_type} declares the inputs {', '.join(inputs) or '(none)'} and the "
            f"outputs {', '.join(operator.outputs)}{'; ' if types else ''}{', '.join(types)}. "
            "Define it with the inputs and types= that the model has."
        )
    return None
