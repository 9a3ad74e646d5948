"""Ids and name of the host device in profiles."""

from __future__ import annotations

import os
import platform
from pathlib import Path

HOST_DEVICE_ID = 1000
"""``device_id`` of the host device in all tables, larger than any CUDA ordinal."""

CONTEXT_ID = 1
"""``context_id`` of the host device in all tables."""

_CPUINFO = Path("/proc/cpuinfo")


def device_name() -> str:
    """Return the display name of the host device, with the CPU model and number of cores."""
    cores = len(os.sched_getaffinity(0))
    return f"host device ({_cpu_model()}, {cores} core{'s' if cores != 1 else ''})"


def _cpu_model() -> str:
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return platform.machine() or "CPU"
