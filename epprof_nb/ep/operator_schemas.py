"""Schemas of operators in the installed ONNX Runtime."""

from __future__ import annotations

import itertools
import struct
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from epprof_nb.core.errors import KernelError
from epprof_nb.ep import types

LAST_VERSION = 2**31 - 2
"""No upper limit. With 2**31 - 1, ONNX Runtime takes a kernel only for its first version."""

_FLOAT, _INTEGER, _TEXT = 0x15, 0x18, 0x22
"""Tags of the fields f, i and s of ``AttributeProto``."""

INFERRED_WRONGLY = frozenset(
    {("", "Attention"), ("com.microsoft", "Attention"), ("com.microsoft", "GroupQueryAttention")}
)
"""Domain and type of operators for which ONNX Runtime may infer wrong output shapes.

In their sums and products, a symbolic dimension counts as 0. Releases before 1.32 infer that a
cache never grows.
"""

Constraints: TypeAlias = "tuple[tuple[str, tuple[str, ...]], ...]"
"""Dtypes allowed by each type constraint that tensors of NumPy's types can satisfy."""


class Range(NamedTuple):
    """Opset versions in which an operator has the same type constraints."""

    first_version: int
    last_version: int
    constraints: Constraints


def versions(op_type: str, domain: str) -> list[Any]:
    """Return ONNX Runtime's schemas of an operator, oldest first."""
    return _versions().get((domain, op_type), [])


def operator_types(domain: str) -> set[str]:
    """Return the types of the operators of a domain."""
    return {op_type for known, op_type in _versions() if known == domain}


def default_of(attribute: Any) -> int | float | str | None:  # noqa: ANN401
    """Return the default of an attribute in a schema.

    Returns
    -------
    default
        None if there is no default, or if it is not a single number or text.
    """
    # An AttributeProto: its name, followed by the value in the field of its type.
    message = bytes(attribute._default_value)  # noqa: SLF001
    if not message:
        return None
    tag, *_ = rest = message[2 + message[1] :]
    if tag == _FLOAT:
        return float(struct.unpack_from("<f", rest, 1)[0])
    if tag == _TEXT:
        return rest[2 : 2 + rest[1]].decode()
    if tag != _INTEGER:
        return None
    value = 0
    for place, byte in enumerate(rest[1:11]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return value - (1 << 64) if value >> 63 else value


def exists(op_type: str, domain: str, version: int) -> bool:
    """Whether ONNX Runtime has a schema of an operator for this opset version or a later one."""
    return any(v.since_version >= version for v in _versions().get((domain, op_type), ()))


def before(op_type: str, domain: str, newest: int | None) -> int | None:
    """Return the last opset before the first version of an operator after `newest`, or None."""
    versions = (v.since_version for v in _versions().get((domain, op_type), ()))
    later = [version for version in versions if newest is not None and version > newest]
    return min(later) - 1 if later else None


def find(op_type: str, domain: str, since: int | None, until: int | None) -> list[Range]:
    """Return the versions of an operator; an empty list if ONNX Runtime has no schema of it.

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
        return []
    if until is not None and until < max(since or 0, versions[0].since_version):
        raise KernelError(
            f"until={until}: {op_type} exists since opset {versions[0].since_version}"
            + (f", and since={since} is later." if since else ".")
        )
    last = [v for v in versions if until is None or v.since_version <= until][-1]
    earlier = versions[: versions.index(last)]
    if since is None:
        covered = [last]
        for version in reversed(earlier):
            if _signature(version) != _signature(last):
                break
            covered.insert(0, version)
    else:
        # The version that is valid at `since` may be older.
        known = [*earlier, last]
        in_force = [v for v in known if v.since_version <= since][-1:]
        covered = [*in_force, *(v for v in known if v.since_version > since)]
    later = [v.since_version for v in versions if v.since_version > last.since_version]
    end = until if until is not None else (later[0] - 1 if later else LAST_VERSION)
    return _ranges(op_type, covered, end)


def _ranges(op_type: str, versions: list[Any], last_version: int) -> list[Range]:
    """Join versions whose type constraints have the same names."""
    groups = [
        list(group)
        for _, group in itertools.groupby(
            versions, lambda v: [c.type_param_str for c in v.type_constraints]
        )
    ]
    starts = [group[0].since_version for group in groups]
    ends = [start - 1 for start in starts[1:]] + [last_version]
    return [
        Range(start, end, _constraints(op_type, group))
        for start, end, group in zip(starts, ends, groups, strict=True)
    ]


def _constraints(op_type: str, versions: list[Any]) -> Constraints:
    found: dict[str, dict[str, None]] = {}
    for version in versions:
        for constraint in version.type_constraints:
            allowed = found.setdefault(constraint.type_param_str, {})
            for name in constraint.allowed_type_strs:
                dtype = types.dtype_of(name)
                if dtype:
                    allowed[dtype] = None
    none = [name for name, allowed in found.items() if not allowed]
    if none:
        raise KernelError(
            f"{op_type} cannot have a kernel in Python: its {', '.join(none)} is never a tensor of "
            "numbers or booleans. Strings, sequences and maps are not supported."
        )
    return tuple((name, tuple(allowed)) for name, allowed in found.items())


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
    try:
        from onnxruntime.capi import _pybind_state
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("onnxruntime"):
            raise  # the installed package lacks something else
        raise ModuleNotFoundError(
            "Kernels in Python (epprof_nb.ep) run in sessions of ONNX Runtime, which is not "
            "installed in this Python environment. Run `pip install onnxruntime` (for CUDA "
            "`onnxruntime-gpu`), and restart the kernel.",
            name=error.name,
        ) from error
    found: dict[tuple[str, str], list[Any]] = {}
    for schema in _pybind_state.get_all_operator_schema():
        found.setdefault((schema.domain, schema.name), []).append(schema)
    for versions in found.values():
        versions.sort(key=lambda schema: schema.since_version)
    return found
