"""Whether XLA's copy of NVTX, with which it names programs and instructions, is attached."""

from __future__ import annotations

import sys
from pathlib import Path

from epprof_nb import _native
from epprof_nb.recording.jax.hlo_lines import live_executables
from epprof_nb.recording.nvtx.injection import is_ours

_PLUGIN = "jax_plugins.xla_cuda"
"""Beginning of the name of the modules that bring XLA for CUDA."""


def is_xla_attached() -> bool:
    """Return False if JAX has compiled for a GPU but its library has not loaded this package.

    A library loads it at its first call of NVTX, which XLA makes when it compiles.
    """
    plugins = [module for name, module in list(sys.modules.items()) if name.startswith(_PLUGIN)]
    files = [getattr(plugin, "__file__", None) for plugin in plugins]
    folders = {str(Path(file).parent) for file in files if file}
    if not folders or not is_ours():
        return True
    if folders & {str(Path(path).parent) for path in _native.nvtx_attached()}:
        return True
    return all(
        executable.client.platform not in {"cuda", "gpu"} for executable in live_executables()
    )
