"""Operators, opset versions and types of execution providers, side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.ep import wheel_kernels
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.ep.known_operators import INVALID
from epprof_nb.ep.operator_schemas import LAST_VERSION
from epprof_nb.ep.provider import provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pandas as pd

Types = dict[str, set[str]]
"""Names of ONNX's types by type constraint."""

_COLUMNS = {"domain": "object", "op_type": "object", "first_opset": "int64", "last_opset": "Int64"}


@dataclass
class _Versions:
    """An operator in a range of opset versions without changes in any provider."""

    domain: str
    op_type: str
    first: int
    last: int
    types: dict[str, Types] = field(default_factory=dict)
    """By provider; a provider without a kernel has no entry."""


def parity(providers: Iterable[str] | None = None) -> pd.DataFrame:
    """Compare the kernels of this provider with the other providers of ONNX Runtime.

    The kernels come from the runtime: from the providers in the installed wheel and from registered
    plugin providers.

    Parameters
    ----------
    providers
        Names of the providers to compare with. By default, all providers of the wheel and all
        registered plugin providers with kernels.

    Returns
    -------
    pandas.DataFrame
        One row per operator and range of opset versions in which no provider changes: ``domain``
        (empty for ONNX's own), ``op_type``, ``first_opset`` (int64), ``last_opset`` (Int64, missing
        without an end), one column per provider with its types by type constraint (missing without
        a kernel), ``status``, ``missing`` and ``limits``. ``status`` is ``"same"``; ``"types"`` if
        other providers take types that this one does not, which ``missing`` lists; ``"missing"`` if
        this provider has no kernel; or ``"only here"``. ``limits`` are the reasons why this
        provider may leave a node to others although its types and versions fit.
        ``attrs["unknown"]`` names the providers of the wheel whose kernels the runtime cannot list:
        without TensorRT, a wheel for GPUs lists only the CPU provider's.

    Raises
    ------
    KernelError
        If a provider is unknown to the runtime.
    CaptureError
        If ONNX Runtime is missing or older than 1.25.

    Examples
    --------
    >>> from epprof_nb import ep
    >>> table = ep.parity()
    >>> table[table["status"] == "missing"]  # doctest: +SKIP
    """
    import pandas as pd

    provider("host")  # registers it
    kernels = {PROVIDER: _registered(PROVIDER)}
    of_wheel = wheel_kernels.all_kernels()
    for kernel in of_wheel.kernels:
        kernels.setdefault(kernel.provider, []).append(kernel)
    for name in _plugins():
        kernels.setdefault(name, []).extend(_registered(name))
    if providers is not None:
        wanted = [providers] if isinstance(providers, str) else list(providers)
        unknown = [name for name in wanted if not kernels.get(name)]
        if unknown:
            known = ", ".join(sorted(name for name, found in kernels.items() if found))
            raise KernelError(
                f"ONNX Runtime has no kernels of {', '.join(unknown)}; it has kernels of {known}. "
                "Register a plugin with onnxruntime.register_execution_provider_library first."
            )
        kernels = {name: kernels[name] for name in dict.fromkeys((PROVIDER, *wanted))}
    names = [name for name, found in kernels.items() if found]
    rows = [_row(versions, names) for versions in _aligned(kernels)]
    columns = [*_COLUMNS, *names, "status", "missing", "limits"]
    table = pd.DataFrame(rows, columns=columns).astype(_COLUMNS)
    table = table.sort_values(["domain", "op_type", "first_opset"], ignore_index=True)
    table.attrs["unknown"] = of_wheel.unknown
    return table


def _registered(name: str) -> list[Any]:
    from onnxruntime.capi import _pybind_state

    try:
        return list(_pybind_state.get_registered_ep_kernel_defs(name))
    except RuntimeError:  # a provider that compiles nodes has no kernels
        return []


def _plugins() -> list[str]:
    import onnxruntime

    built_in = set(onnxruntime.get_all_providers())
    names = dict.fromkeys(device.ep_name for device in onnxruntime.get_ep_devices())
    return [name for name in names if name not in built_in and name != PROVIDER]


def _aligned(kernels: dict[str, list[Any]]) -> Iterator[_Versions]:
    """Yield each operator, its versions split wherever some provider's kernel begins or ends."""
    by_operator: dict[tuple[str, str], list[tuple[str, Any]]] = {}
    for name, found in kernels.items():
        for kernel in found:
            by_operator.setdefault((kernel.domain, kernel.op_name), []).append((name, kernel))
    for (domain, op_type), found in by_operator.items():
        ranges = [(name, *_range(kernel), kernel.type_constraints) for name, kernel in found]
        starts = {first for _, first, _, _ in ranges}
        ends = {last + 1 for _, _, last, _ in ranges}
        cuts = sorted(starts | ends)
        previous: _Versions | None = None
        for first, end in pairwise(cuts):
            versions = _Versions(domain, op_type, first, end - 1)
            for name, low, high, constraints in ranges:
                if low <= first and end - 1 <= high:
                    types = versions.types.setdefault(name, {})
                    for constraint, allowed in constraints.items():
                        types.setdefault(constraint, set()).update(map(_short, allowed))
            if previous is not None and versions.types == previous.types:
                previous.last = versions.last
                continue
            if previous is not None and previous.types:
                yield previous
            previous = versions
        if previous is not None and previous.types:
            yield previous


def _range(kernel: Any) -> tuple[int, int]:  # noqa: ANN401
    first, last = kernel.version_range
    return int(first), min(int(last), LAST_VERSION)


def _short(onnx_type: str) -> str:
    found = re.fullmatch(r"tensor\((\w+)\)", onnx_type)
    return found[1] if found else onnx_type


def _row(versions: _Versions, names: list[str]) -> dict[str, Any]:
    ours = versions.types.get(PROVIDER)
    others: Types = {}
    for name, types in versions.types.items():
        if name != PROVIDER:
            for constraint, allowed in types.items():
                others.setdefault(constraint, set()).update(allowed)
    missing: Types = {}
    if ours is not None:
        # If a kernel does not restrict a constraint, every type is allowed.
        missing = {
            constraint: allowed - ours[constraint]
            for constraint, allowed in others.items()
            if constraint in ours and allowed - ours[constraint]
        }
    if ours is None:
        status = "missing"
    elif len(versions.types) == 1:
        status = "only here"
    else:
        status = "types" if missing else "same"
    row: dict[str, Any] = {
        "domain": versions.domain,
        "op_type": versions.op_type,
        "first_opset": versions.first,
        "last_opset": None if versions.last == LAST_VERSION else versions.last,
        "status": status,
        "missing": _text(missing),
        "limits": _limits(versions),
    }
    for name in names:
        row[name] = _text(versions.types[name]) if name in versions.types else None
    return row


def _limits(versions: _Versions) -> str:
    reasons: dict[str, None] = {}
    for kernel in REGISTRY.kernels():
        d = kernel.declaration
        if (d.domain, d.op_type) == (versions.domain, versions.op_type) and (
            d.first_version <= versions.last and versions.first <= d.last_version
        ):
            reasons.update(dict.fromkeys(r for r in kernel.limits if r != INVALID))
    return "; ".join(reasons)


def _text(types: Types) -> str:
    return "; ".join(f"{name}: {', '.join(sorted(types[name]))}" for name in sorted(types))
