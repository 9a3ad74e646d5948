"""Schemas of operators, as the installed ONNX Runtime has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from epprof_nb.core.errors import KernelError
from epprof_nb.ep import types

LAST_VERSION = 2**31 - 2
"""No upper limit. With 2**31 - 1, ONNX Runtime takes a kernel only for its first version."""


@dataclass(frozen=True)
class Schema:
    """What a kernel must know of an operator in a range of opset versions."""

    first_version: int
    last_version: int
    constraints: dict[str, tuple[str, ...]]
    """Dtypes allowed by each type constraint that tensors of NumPy's types can satisfy."""


def find(op_type: str, domain: str, since: int | None, until: int | None) -> Schema | None:
    """Return the schema of an operator; None if ONNX Runtime has none.

    Parameters
    ----------
    op_type, domain
        The operator.
    since, until
        First and last opset version to cover. By default the range in which the operator has its
        current signature: inputs, outputs, attributes and their defaults.

    Raises
    ------
    KernelError
        If the operator has no version in the range, or takes no tensors of NumPy's types.
    """
    versions = _versions().get((domain, op_type))
    if not versions:
        return None
    if until is not None and until < versions[0].since_version:
        raise KernelError(f"{op_type} exists since opset {versions[0].since_version}.")
    last = [v for v in versions if until is None or v.since_version <= until][-1]
    if since is None:
        covered = [last]
        for version in reversed(versions[: versions.index(last)]):
            if _signature(version) != _signature(last):
                break
            covered.append(version)
        first = covered[-1].since_version
    else:
        first = since
        covered = [v for v in versions if since <= v.since_version <= last.since_version]
        covered = covered or [last]
    later = [v.since_version for v in versions if v.since_version > last.since_version]
    constraints: dict[str, dict[str, None]] = {}
    for version in covered:
        for constraint in version.type_constraints:
            allowed = constraints.setdefault(constraint.type_param_str, {})
            for name in constraint.allowed_type_strs:
                dtype = types.dtype_of(name)
                if dtype:
                    allowed[dtype] = None
    none = [name for name, allowed in constraints.items() if not allowed]
    if none:
        raise KernelError(
            f"{op_type} cannot have a kernel in Python: its {', '.join(none)} is never a tensor of "
            "numbers or booleans. Strings, sequences and maps are not supported."
        )
    return Schema(
        first,
        until if until is not None else (later[0] - 1 if later else LAST_VERSION),
        {name: tuple(allowed) for name, allowed in constraints.items()},
    )


def _signature(version: Any) -> object:  # noqa: ANN401
    return (
        [(p.name, p.typeStr, str(p.option)) for p in version.inputs],
        [(p.name, p.typeStr, str(p.option)) for p in version.outputs],
        sorted(
            (name, str(a.type), a.required, bytes(a._default_value))  # noqa: SLF001
            for name, a in version.attributes.items()
        ),
        [c.type_param_str for c in version.type_constraints],
    )


@cache
def _versions() -> dict[tuple[str, str], list[Any]]:
    from onnxruntime.capi import _pybind_state

    found: dict[tuple[str, str], list[Any]] = {}
    for schema in _pybind_state.get_all_operator_schema():
        found.setdefault((schema.domain, schema.name), []).append(schema)
    for versions in found.values():
        versions.sort(key=lambda schema: schema.since_version)
    return found
