"""Checks of this machine for ``epprof doctor``, run and printed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from epprof_nb.commands.doctor_checks import CHECKS, Check

if TYPE_CHECKING:
    from collections.abc import Callable


_OF_THE_GPU = ("CUDA", "libcupti", "profiling permission", "other profilers")
"""Checks of the requirements for recording a GPU, apart from the driver."""


def diagnose() -> list[Check]:
    """Run all checks. Does not start CUDA and never raises."""
    return [_run_check(name, check) for name, check in CHECKS]


def render(checks: list[Check], width: int = 100) -> str:
    """Return the results as text, with each remedy below its check."""
    label = max(len(check.name) for check in checks)
    indent = " " * (label + 11)
    lines = []
    for check in checks:
        head = f"{check.status:<7}  {check.name:<{label}}  "
        lines.append(textwrap.fill(head + check.found, width, subsequent_indent=indent))
        if check.remedy:
            lines.append(
                textwrap.fill(check.remedy, width, initial_indent=f"{indent}-> ",
                              subsequent_indent=f"{indent}   ")
            )  # fmt: skip
    return "\n".join(lines)


def verdict(checks: list[Check]) -> str:
    """Return a sentence that says what this machine can record.

    Examples
    --------
    >>> verdict([Check("native core", "missing", "cannot be loaded", "Reinstall it.")])
    'Not ready: see native core.'
    >>> verdict([Check("NVIDIA driver", "warning", "not found", "Install it.")])
    'Ready, without a GPU: the host device and ONNX Runtime on the CPU are recorded.'
    """
    missing = [check.name for check in checks if check.status == "missing"]
    if missing:
        return f"Not ready: see {', '.join(missing)}."
    status = {check.name: check.status for check in checks}
    if status.get("NVIDIA driver", "ok") != "ok":
        return "Ready, without a GPU: the host device and ONNX Runtime on the CPU are recorded."
    doubts = [name for name in _OF_THE_GPU if status.get(name, "ok") != "ok"]
    if doubts:
        return f"GPU work may not be recorded: see {', '.join(doubts)}."
    return "Ready: GPU work is recorded."


def run() -> int:
    """Print the results. Return the exit code: 1 if anything is missing, else 0."""
    checks = diagnose()
    print(render(checks))
    print(f"\n{verdict(checks)}")
    return int(any(check.status == "missing" for check in checks))


def _run_check(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 (one failing check must not hide the others)
        return Check(
            name,
            "warning",
            f"the check failed: {type(error).__name__}: {error}",
            "Please report this with the complete output of epprof doctor.",
        )
