"""Checks of this machine for ``epprof doctor``, run and printed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from epprof_nb.commands.doctor_checks import CHECKS, Check

if TYPE_CHECKING:
    from collections.abc import Callable


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


def run() -> int:
    """Print the results; return the exit code: 1 if anything is missing, else 0."""
    checks = diagnose()
    print(render(checks))
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
