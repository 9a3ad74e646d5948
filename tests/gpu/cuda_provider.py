"""What tests of sessions on ONNX Runtime's CUDA provider share. They are skipped without it."""

from __future__ import annotations

from collections import Counter

import pytest

ort = pytest.importorskip("onnxruntime", minversion="1.25", reason="onnxruntime is not installed")
if "CUDAExecutionProvider" not in ort.get_available_providers():
    pytest.skip("onnxruntime-gpu is not installed", allow_module_level=True)

CUDA = ["CUDAExecutionProvider", "CPUExecutionProvider"]
LAUNCHES = ("kernel", "memcpy", "memset")
"""Kinds of activities that a run launches."""


def states(prof):
    """Number of runs by where their nodes come from."""
    return Counter(prof.by_run()["node_events"])
