"""Observe ONNX Runtime sessions: their nodes become ops in every profile.

``%load_ext epprof_nb`` calls `install`; scripts call it themselves. Sessions created afterwards
carry an observer, which does not change their graph, results or provider list.
"""

from __future__ import annotations

from epprof_nb.onnxruntime.installation import (
    disable_profiling,
    enable_profiling,
    install,
    session,
    uninstall,
)

__all__ = ["disable_profiling", "enable_profiling", "install", "session", "uninstall"]
