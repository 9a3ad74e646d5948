"""The checks of ``epprof doctor``, one function each."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from epprof_nb.core.ort_releases import FIRST_RELEASE, FIRST_WITH_GRAPHS, text_of
from epprof_nb.recording.cupti import find_library, gpu_state
from epprof_nb.recording.cupti.find_library import (
    CuptiNotFoundError,
    Environment,
    distribution_version,
)
from epprof_nb.recording.nvtx import injection

if TYPE_CHECKING:
    from collections.abc import Callable

Status = Literal["ok", "warning", "missing"]

_DISTRIBUTION = "epprof-nb"
_OLDEST_ANYWIDGET = (0, 9, 18)
_OLDEST_JUPYTERLAB = (4, 2)
_ONNXRUNTIME_WHEELS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino",
                       "onnxruntime-training")  # fmt: skip
_DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
_PROFILER_VARIABLES = ("CUDA_INJECTION64_PATH", "NSYS_", "KINETO_")
_PROFILER_LIBRARIES = (
    "libToolsInjection",
    "libcuda-injection",
    "libInterceptorInjection",
    "nsight",
)
_SLOW_CLOCK_NS = 500
_SAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check.

    Attributes
    ----------
    name : str
        Name of the checked component.
    status : str
        ``"ok"``, ``"warning"`` (works with limitations) or ``"missing"`` (does not work).
    found : str
        Description of the installed component.
    remedy : str
        How to fix the problem, in one sentence; empty without a problem.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""


def _platform() -> Check:
    found = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64"):
        return Check("platform", "ok", found)
    return Check(
        "platform", "missing", found,
        "Recording requires Linux (x86_64 or aarch64). Saved profiles can be opened here.",
    )  # fmt: skip


def _python() -> Check:
    found = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    if platform.python_implementation() == "CPython":
        return Check("Python", "ok", found)
    return Check("Python", "missing", found, "Use CPython, which the native core requires.")


def _stacks() -> Check:
    try:
        from epprof_nb.recording.stacks import availability
    except ImportError:
        found = "not checked: the native core cannot be loaded"
        return Check("Python stacks", "missing", found, "See native core.")
    reason = availability.why_unavailable()
    if reason is None:
        return Check("Python stacks", "ok", "recorded at launches and waits")
    return Check(
        "Python stacks", "warning", f"not recorded: {reason}",
        "Everything else is recorded. For stacks, use a release of CPython 3.11 to 3.15.",
    )  # fmt: skip


def _samples() -> Check:
    try:
        from epprof_nb.recording.samples.availability import why_no_samples
    except ImportError:
        found = "not checked: the native core cannot be loaded"
        return Check("host samples", "missing", found, "See native core.")
    reason = why_no_samples()
    if reason is None:
        return Check("host samples", "ok", "taken between launches, without the GIL")
    return Check(
        "host samples", "warning", f"not taken: {reason}",
        "Everything else is recorded. In a container, allow the system call process_vm_readv.",
    )  # fmt: skip


def _dependencies() -> Check:
    from packaging.requirements import Requirement

    declared = [Requirement(line) for line in importlib.metadata.requires(_DISTRIBUTION) or ()]
    needed = [of for of in declared if of.marker is None or of.marker.evaluate({"extra": ""})]
    problems, remedies = [], []
    for requirement in needed:
        version = distribution_version(requirement.name)
        if version is None:
            problems.append(f"{requirement.name} is not installed")
        elif not requirement.specifier.contains(version, prereleases=True):
            problems.append(f"{requirement.name} {version} is not {requirement.specifier}")
        else:
            continue
        remedies.append(f'"{requirement.name}{requirement.specifier}"')
    if problems:
        return Check(
            "dependencies", "missing", "; ".join(problems), f"pip install {' '.join(remedies)}"
        )
    return Check("dependencies", "ok", f"all {len(needed)} are installed")


def _native_core() -> Check:
    try:
        from epprof_nb import _native
    except ImportError as error:
        return Check(
            "native core", "missing", f"cannot be loaded: {error}",
            "Reinstall the package with a C++ compiler on the PATH: "
            "pip install --force-reinstall --no-cache-dir epprof-nb",
        )  # fmt: skip
    before, now, after = time.monotonic_ns(), _native.now_ns(), time.monotonic_ns()
    if not before <= now <= after:
        return Check(
            "native core", "missing",
            f"its clock differs from CLOCK_MONOTONIC by {now - before:,} ns",
            "Reinstall the package on this machine, because recorded times would be wrong.",
        )  # fmt: skip
    start = time.perf_counter_ns()
    for _ in range(_SAMPLES):
        _native.now_ns()
    cost = (time.perf_counter_ns() - start) / _SAMPLES
    found = f"loaded; reading CLOCK_MONOTONIC takes {cost:.0f} ns"
    if cost <= _SLOW_CLOCK_NS:
        return Check("native core", "ok", found)
    return Check(
        "native core", "warning", found,
        "Reading the clock is slow on this machine, which increases profiler overhead. If "
        "possible, boot with the kernel parameter clocksource=tsc.",
    )  # fmt: skip


def _driver() -> Check:
    state = gpu_state.snapshot()
    if not state:
        return Check(
            "NVIDIA driver", "warning", "not found",
            "To record a GPU, install the NVIDIA driver (start containers with --gpus all). "
            "Without a GPU, use the host device (epprof_nb.host).",
        )  # fmt: skip
    gpus = [
        f"{gpu.get('name', 'GPU')} (compute capability {gpu.get('compute_capability', 'unknown')})"
        for gpu in state["gpus"]
    ]
    found = (
        f"{state.get('driver_version', 'unknown version')}, supports CUDA up to "
        f"{state.get('cuda_version', 'unknown')}; {', '.join(gpus) or 'no GPU'}"
    )
    if gpus:
        return Check("NVIDIA driver", "ok", found)
    return Check(
        "NVIDIA driver", "warning", found,
        "The driver finds no GPU. Check that one is assigned to this machine or container.",
    )  # fmt: skip


def _cuda() -> Check:
    environment = Environment.current()
    in_use, installed = (
        find_library.majors_in_use(environment),
        find_library.majors_installed(environment),
    )
    parts = list(in_use.values())
    parts += [why for major, why in installed.items() if major not in in_use]
    toolkit = environment.environ.get("CUDA_HOME") or environment.environ.get("CUDA_PATH")
    if not toolkit and Path("/usr/local/cuda").exists():
        toolkit = str(Path("/usr/local/cuda").resolve())
    if toolkit:
        parts.append(f"toolkit {toolkit}")
    if len(in_use) > 1:
        return Check(
            "CUDA", "warning", "; ".join(parts),
            "Two major versions of CUDA are in use in this process. Keep the packages of only one.",
        )  # fmt: skip
    supported = _driver_major()
    newest = max(in_use, default=0)
    if supported and newest > supported:
        return Check(
            "CUDA", "missing", "; ".join(parts),
            f"The driver supports CUDA {supported} at most. Update it, or use packages for "
            f"CUDA {supported}.",
        )  # fmt: skip
    return Check("CUDA", "ok", "; ".join(parts) or "not in use, and no package or toolkit found")


def _driver_major() -> int:
    """Return the newest CUDA major version that the driver supports; 0 without a driver."""
    return int(gpu_state.snapshot().get("cuda_version", "0").split(".")[0])


def _cupti() -> Check:
    supported = _driver_major()
    try:
        libcupti = find_library.locate_libcupti()
    except CuptiNotFoundError as error:
        if not supported:
            return Check("libcupti", "ok", "not found, but not needed without a GPU")
        what, _, remedy = str(error).partition(" Install it with: ")
        return Check("libcupti", "missing", what, f"Install it with: {remedy}" if remedy else "")
    text = f"{libcupti.path} (CUDA {libcupti.cuda_major}, {libcupti.origin})"
    if supported and libcupti.cuda_major > supported:
        return Check(
            "libcupti", "missing", text,
            f"The driver supports CUDA {supported} at most. Update it, or install packages for "
            f'CUDA {supported}: pip install "epprof-nb[cuda{supported}]"',
        )  # fmt: skip
    return Check("libcupti", "ok", text)


def _permission() -> Check:
    name = "profiling permission"
    try:
        text = _DRIVER_PARAMETERS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Check(name, "ok", "not restricted by the driver")
    if "RmProfilingAdminOnly: 1" in text:
        return Check(
            name, "ok",
            "hardware counters are restricted to administrators (RmProfilingAdminOnly: 1), but "
            "epprof_nb uses only activity records, which need no permission",
        )  # fmt: skip
    return Check(name, "ok", "not restricted (RmProfilingAdminOnly: 0)")


def _other_profilers() -> Check:
    found = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(_PROFILER_VARIABLES)
        or (name == injection.VARIABLE and not _is_nvtx_ours())
        or (name == "LD_PRELOAD" and any(library in value for library in _PROFILER_LIBRARIES))
    ]
    found += [
        f"{Path(path).name} is loaded"
        for path in find_library.mapped_files()
        if any(library in Path(path).name for library in _PROFILER_LIBRARIES)
    ]
    torch_autograd = getattr(sys.modules.get("torch"), "autograd", None)
    if torch_autograd is not None and torch_autograd._profiler_enabled():  # noqa: SLF001
        found.append("torch.profiler is recording")
    if not found:
        return Check("other profilers", "ok", "none in the process or its environment")
    return Check(
        "other profilers", "warning", "; ".join(found),
        "Only one CUPTI profiler can record a process. Stop the other one, or unset its "
        "variables and restart the Jupyter kernel.",
    )  # fmt: skip


def _is_nvtx_ours() -> bool:
    try:
        return injection.is_ours()
    except ImportError:  # the native core cannot be loaded, so no library can find it
        return False


def _nvtx() -> Check:
    try:
        from epprof_nb import _native
    except ImportError:
        return Check("NVTX", "missing", "needs the native core, see above")
    attached = [Path(path).name for path in _native.nvtx_attached()]
    if injection.is_ours():
        found = "ranges of libraries that first use NVTX after epprof_nb was imported are recorded"
        return Check("NVTX", "ok", f"{found}; attached: {', '.join(attached) or 'none yet'}")
    if not os.environ.get(injection.VARIABLE):
        return Check("NVTX", "ok", "switched off: its ranges are not recorded")
    return Check(
        "NVTX", "warning", f"{injection.VARIABLE}={os.environ[injection.VARIABLE]}: "
        + ("the file does not exist" if injection.missing_file()
           else "another tool records its ranges"),
        f"Unset {injection.VARIABLE} before Python starts to record them here.",
    )  # fmt: skip


def _onnxruntime() -> Check:
    installed = {
        wheel: version
        for wheel in _ONNXRUNTIME_WHEELS
        if (version := distribution_version(wheel)) is not None
    }
    found = ", ".join(f"{wheel} {version}" for wheel, version in installed.items())
    if not installed:
        return Check("ONNX Runtime", "ok", "not installed (needed for ONNX models only)")
    if len(installed) > 1:
        return Check(
            "ONNX Runtime", "warning", found,
            "The packages overwrite each other's files. Run pip uninstall "
            f"{' '.join(installed)}, then install the one you need.",
        )  # fmt: skip
    if _numbers(next(iter(installed.values()))) < FIRST_RELEASE:
        wheel, oldest = next(iter(installed)), text_of(FIRST_RELEASE)
        return Check(
            "ONNX Runtime", "warning", found,
            f"Recording nodes requires {oldest} or newer: "
            f'pip install --upgrade "{wheel}>={oldest}"',
        )  # fmt: skip
    if _numbers(next(iter(installed.values()))) < FIRST_WITH_GRAPHS:
        found += f"; graphs of kernels in Python need {text_of(FIRST_WITH_GRAPHS)}"
    return Check("ONNX Runtime", "ok", found)


def _front_end() -> Check:
    versions = {
        name: distribution_version(name) for name in ("anywidget", "ipywidgets", "jupyterlab")
    }
    found = ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items())
    static = files("epprof_nb") / "views" / "static"
    bundle = static.is_dir() and any(entry.name.endswith(".js") for entry in static.iterdir())
    if not bundle:
        return Check(
            "front end", "missing", f"{found}; the files of the viewer are missing",
            "Reinstall the package: pip install --force-reinstall epprof-nb",
        )  # fmt: skip
    if _numbers(versions["anywidget"] or "0") < _OLDEST_ANYWIDGET:
        return Check(
            "front end", "missing", found, 'pip install --upgrade "anywidget>=0.9.18"'
        )  # fmt: skip
    lab = versions["jupyterlab"]
    if lab is not None and _numbers(lab) < _OLDEST_JUPYTERLAB:
        return Check(
            "front end", "warning", found,
            'Views are tested with JupyterLab 4.2 or newer: pip install --upgrade '
            '"jupyterlab>=4.2"',
        )  # fmt: skip
    return Check("front end", "ok", found)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, such as ``(1, 25, 0)`` for ``1.25.0rc1``."""
    numbers: list[int] = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


CHECKS: tuple[tuple[str, Callable[[], Check]], ...] = (
    ("platform", _platform),
    ("Python", _python),
    ("Python stacks", _stacks),
    ("host samples", _samples),
    ("dependencies", _dependencies),
    ("native core", _native_core),
    ("NVIDIA driver", _driver),
    ("CUDA", _cuda),
    ("libcupti", _cupti),
    ("profiling permission", _permission),
    ("other profilers", _other_profilers),
    ("NVTX", _nvtx),
    ("ONNX Runtime", _onnxruntime),
    ("front end", _front_end),
)
