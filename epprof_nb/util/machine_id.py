"""A number that identifies a machine without naming it."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path


@cache
def machine_id() -> str:
    """Return 16 hexadecimal digits that are always the same on this machine.

    They are a hash of its host name, installation and processor.
    """
    parts = [platform.node()]
    try:
        parts.append(Path("/etc/machine-id").read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        parts.append("")
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        parts.append(next((line for line in lines if line.startswith("model name")), ""))
    except OSError:
        parts.append(platform.processor())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
