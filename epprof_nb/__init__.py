"""A GPU profiler for notebooks.

Run ``%load_ext epprof_nb``, then put ``%%gpuprofile prof`` above a cell. The view under the cell
shows which lines and named ops kept the GPU busy, and joins every kernel, copy and memset to the
op that launched it. ``prof`` holds the same data as pandas DataFrames.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epprof_nb import ep, host, mcp, onnxruntime, testing
    from epprof_nb.jobs.cluster import cluster
    from epprof_nb.jobs.job import Job
    from epprof_nb.jobs.loading import load
    from epprof_nb.notebook.extension import load_ipython_extension, unload_ipython_extension
    from epprof_nb.profiles import Profile, profile, read_trace
    from epprof_nb.recording.ranges.marked_phases import phase
    from epprof_nb.recording.ranges.ranges import op
    from epprof_nb.recording.session.marked_steps import step
    from epprof_nb.views.comparison import compare

__all__ = [
    "Job",
    "Profile",
    "cluster",
    "compare",
    "ep",
    "host",
    "load",
    "load_ipython_extension",
    "mcp",
    "onnxruntime",
    "op",
    "phase",
    "profile",
    "read_trace",
    "step",
    "testing",
    "unload_ipython_extension",
]

# Public name -> its module, which is imported when the name is first used. Importing the package
# does not import pandas and IPython.
_HOMES = {
    "Job": "epprof_nb.jobs.job",
    "Profile": "epprof_nb.profiles",
    "cluster": "epprof_nb.jobs.cluster",
    "compare": "epprof_nb.views.comparison",
    "load": "epprof_nb.jobs.loading",
    "load_ipython_extension": "epprof_nb.notebook.extension",
    "op": "epprof_nb.recording.ranges.ranges",
    "phase": "epprof_nb.recording.ranges.marked_phases",
    "profile": "epprof_nb.profiles",
    "read_trace": "epprof_nb.profiles",
    "step": "epprof_nb.recording.session.marked_steps",
    "unload_ipython_extension": "epprof_nb.notebook.extension",
}


def __getattr__(name: str) -> object:
    if name in ("ep", "host", "mcp", "onnxruntime", "testing"):
        return import_module(f"epprof_nb.{name}")
    if name == "_native":
        return _import_native()
    if name == "__version__":
        from epprof_nb.core.version import package_version

        return package_version()
    if name not in _HOMES:
        raise AttributeError(f"module 'epprof_nb' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def _import_native() -> object:
    try:
        return import_module("epprof_nb._native")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"epprof_nb was imported from {__path__[0]}, which has no native module: this is a "
            "source checkout that is not installed in this Python environment, or that hides the "
            "installed package. Run `pip install -e .` in the checkout, with the pip of this "
            "environment; or, to use the installed package, start Python in another directory."
        ) from error


def _offer_nvtx() -> None:
    """Let libraries that use NVTX find the native core; they look once, at their first range."""
    with suppress(ImportError):  # a checkout that is not installed; its first use reports it
        import_module("epprof_nb.recording.nvtx.injection").offer()


def _watch_torch() -> None:
    """Note the modules of the kernels that torch compiles, also before the first profile."""
    import_module("epprof_nb.recording.torch.inductor_origins").watch()


def _watch_kernel_sessions() -> None:
    """Observe the sessions with kernels in Python, also before the first profile."""

    def observe(session: object, number: int) -> None:
        import_module("epprof_nb.onnxruntime.python_kernel_sessions").observe(session, number)

    def watch() -> None:
        import_module("epprof_nb.ep.session_patches").CREATED.append(observe)

    import_module("epprof_nb.util.after_import").after_import("epprof_nb.ep.session_patches", watch)


def __dir__() -> list[str]:
    return sorted(__all__)


_offer_nvtx()
_watch_torch()
_watch_kernel_sessions()
