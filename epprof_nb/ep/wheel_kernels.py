"""Kernels of the providers that are built into the installed ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any, NamedTuple

from epprof_nb.core.ort_binding import PROVIDER

_ASK = "from onnxruntime.capi import _pybind_state as state; state.get_all_opkernel_def()"
_SAFE = {"AzureExecutionProvider", "CPUExecutionProvider", PROVIDER}
"""Providers that need only the libraries of ONNX Runtime and of this package."""


class WheelKernels(NamedTuple):
    """Definitions of kernels, and the providers whose kernels are not known."""

    kernels: list[Any]
    unknown: list[str]


def all_kernels() -> WheelKernels:
    """Return the definitions of the kernels of all providers that are built in.

    ONNX Runtime loads the libraries of all its providers for this, and ends the process if one is
    missing, such as TensorRT's. In that case, it returns only the CPU provider's kernels.
    """
    import onnxruntime
    from onnxruntime.capi import _pybind_state

    others = [name for name in onnxruntime.get_available_providers() if name not in _SAFE]
    if not others or _answers():
        return WheelKernels(list(_pybind_state.get_all_opkernel_def()), [])
    of_cpu = _pybind_state.get_registered_ep_kernel_defs("CPUExecutionProvider")
    return WheelKernels(list(of_cpu), others)


@cache
def _answers() -> bool:
    """Whether a process survives that requests them."""
    asked = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, check=False)  # noqa: S603
    return asked.returncode == 0


def providers_with(op_type: str, domain: str) -> list[str]:
    """Return the providers that are known to have a kernel of an operator."""
    kernels = all_kernels().kernels
    return sorted({k.provider for k in kernels if (k.domain, k.op_name) == (domain, op_type)})
