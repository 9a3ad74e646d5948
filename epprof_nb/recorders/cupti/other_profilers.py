"""Detection of other profilers in this process, which compete for CUPTI."""

from __future__ import annotations

import os
import sys

_ALREADY_SUBSCRIBED = {
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_ERROR_MAX_LIMIT_REACHED",
}


def active_profiler() -> str | None:
    """Return the name of another profiler that is recording in this process, if detectable."""
    torch = sys.modules.get("torch")
    enabled = getattr(getattr(torch, "autograd", None), "_profiler_enabled", None)
    if enabled is not None and enabled():
        return "torch.profiler"
    injected = os.environ.get("CUDA_INJECTION64_PATH", "")
    if injected:
        return "Nsight Systems" if "nsys" in injected.lower() else injected
    if any("NVIDIA_NSIGHT_COMPUTE" in k or k.startswith("NV_NSIGHT") for k in os.environ):
        return "Nsight Compute"
    return None


def likely_holder(result: str) -> str:
    """Return who probably holds CUPTI's callbacks, given the error of the subscription."""
    if result not in _ALREADY_SUBSCRIBED:
        return "an unknown tool"
    if "torch" in sys.modules:
        return "another profiler, probably torch.profiler, which keeps them after its first run"
    return "another profiler"
