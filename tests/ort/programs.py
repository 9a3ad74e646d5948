"""Programs in processes of their own, because registrations with ONNX Runtime are permanent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.helpers import forked_python
from tests.paths import ROOT

if TYPE_CHECKING:
    import subprocess

# Not ONNX Runtime, whose import starts a thread, which a fork would not have.
IMPORTED = ("numpy", "tests.ort.models")


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code that must succeed; it may not depend on when NumPy and ONNX are imported."""
    done = forked_python.run(["-c", code, *arguments], cwd=ROOT, imported=IMPORTED)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def lines(code: str, *arguments: str) -> list[str]:
    """Run such code and return the lines that it prints."""
    return run(code, *arguments).stdout.splitlines()
