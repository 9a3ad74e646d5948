"""Kernels of the providers that are built into the installed ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

from epprof_nb.core.errors import KernelError

_ASK = "from onnxruntime.capi import _pybind_state as state; state.get_all_opkernel_def()"
_SAFE = {"AzureExecutionProvider", "CPUExecutionProvider"}
"""Providers that need no library of their own."""


def all_kernels() -> list[Any]:
    """Return the definitions of all kernels.

    Raises
    ------
    KernelError
        If ONNX Runtime cannot tell, because the library of a provider is missing.
    """
    import onnxruntime
    from onnxruntime.capi import _pybind_state

    needed = [name for name in onnxruntime.get_available_providers() if name not in _SAFE]
    if needed and not _answers():
        raise KernelError(
            "ONNX Runtime cannot list the kernels of its providers here: a process that asked for "
            f"them has ended. It loads the libraries of {', '.join(needed)} for that, and fails if "
            "one is missing, such as TensorRT's. Install what they need, or the CPU wheel in "
            "another environment."
        )
    return list(_pybind_state.get_all_opkernel_def())


@cache
def _answers() -> bool:
    """Whether a process that asks survives: without a library, the question ends it."""
    asked = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, check=False)  # noqa: S603
    return asked.returncode == 0


def providers_with(op_type: str, domain: str) -> list[str]:
    """Return the providers that have a kernel of an operator; none if it is not known."""
    try:
        kernels = all_kernels()
    except KernelError:
        return []
    return sorted({k.provider for k in kernels if (k.domain, k.op_name) == (domain, op_type)})
