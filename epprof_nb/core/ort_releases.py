"""Releases of ONNX Runtime: the first that is recorded, and the first with graphs."""

from __future__ import annotations

import re

from epprof_nb.core.errors import CaptureError

FIRST_RELEASE = (1, 25)
"""The first release that reports its events to execution providers."""
FIRST_WITH_GRAPHS = (1, 26)
"""The first release that captures graphs of plugin providers."""


def check_release(version: str) -> None:
    """Raise `CaptureError` if ONNX Runtime is too old to let execution providers profile."""
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if numbers < FIRST_RELEASE:
        raise CaptureError(
            f"The nodes of ONNX Runtime {version} cannot be recorded: {text_of(FIRST_RELEASE)} is "
            "the first release that reports its events to execution providers. Run `pip install "
            "-U onnxruntime` (or onnxruntime-gpu) and restart the Jupyter kernel."
        )


def text_of(release: tuple[int, int]) -> str:
    """Return a release as its users write it, such as ``1.25``."""
    return ".".join(map(str, release))
