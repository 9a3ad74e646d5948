"""Search for the libcupti that matches the CUDA version of this process, without starting CUDA."""

from __future__ import annotations

import ctypes
import importlib.metadata
import mmap
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import CaptureError
from epprof_nb.util.cuda_state import DRIVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MAPS = Path("/proc/self/maps")
_CUPTI_FILE = re.compile(r"libcupti(-[0-9a-f]+)?\.so\.(\d+)[.\d]*")
_CUDA_FILE = re.compile(r"lib(?:cudart|nvrtc|cublas|cublasLt)(?:-[0-9a-f]+)?\.so\.(\d+)[.\d]*")
_SONAME = re.compile(rb"\0libcupti\.so\.(\d{1,3})\0")
_DRIVER_FILE = re.compile(r"libcuda\.so(\.\d+)*")
# Toolkits name the file by year (libcupti.so.2025.3.1), wheels by CUDA version (libcupti.so.13).
_FIRST_YEAR = 2000
_OLDEST_MAJOR = 12
_SYSTEM_DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64")
_WHEELS = {
    "nvidia/cuda_cupti/lib": "nvidia-cuda-cupti-cu12",
    "nvidia/cu13/lib": "nvidia-cuda-cupti",
}


class CuptiNotFoundError(CaptureError):
    """No libcupti that matches the CUDA version of this process was found."""


@dataclass(frozen=True, slots=True)
class CuptiLibrary:
    """A libcupti file, its CUDA major version (0 if unknown) and its origin."""

    path: str
    cuda_major: int
    origin: str


@dataclass(frozen=True, slots=True)
class Environment:
    """Inputs of the search; tests pass their own.

    Attributes
    ----------
    mapped : tuple of str
        Files mapped into the process.
    environ : mapping of str to str
        Environment variables.
    import_path : tuple of Path
        Directories from which packages are imported.
    root : Path
        Root of the file system that toolkits are installed in.
    prefix : Path
        Prefix of the Python environment.
    modules : mapping of str to object
        Imported modules.
    version_of : callable
        Maps the name of a distribution to its version, or None if it is not installed.
    """

    mapped: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    import_path: tuple[Path, ...] = ()
    root: Path = Path("/")
    prefix: Path = Path("/nowhere")
    modules: Mapping[str, object] = field(default_factory=dict)
    version_of: Callable[[str], str | None] = lambda _: None

    @classmethod
    def current(cls) -> Environment:
        """Return the environment of this process."""
        return cls(
            mapped=mapped_files(),
            environ=os.environ,
            import_path=tuple(Path(entry) for entry in sys.path if entry),
            prefix=Path(sys.prefix),
            modules=sys.modules,
            version_of=distribution_version,
        )


def distribution_version(name: str) -> str | None:
    """Return the version of a distribution, or None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def mapped_files() -> tuple[str, ...]:
    """Return the files mapped into this process, such as shared libraries, without duplicates."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ()
    # Five columns, then the path. Anonymous mappings have no path.
    parts = (line.split(maxsplit=5) for line in lines)
    return tuple(dict.fromkeys(part[5] for part in parts if len(part) == 6 and part[5][0] == "/"))


def majors_in_use(environment: Environment) -> dict[int, str]:
    """Return the CUDA major versions in use by this process, each with the evidence for it."""
    majors: dict[int, str] = {}
    for path in environment.mapped:
        match = _CUDA_FILE.fullmatch(Path(path).name)
        if match:
            majors.setdefault(int(match[1]), f"{Path(path).name} is loaded")
    torch_cuda = getattr(getattr(environment.modules.get("torch"), "version", None), "cuda", None)
    if isinstance(torch_cuda, str):
        majors.setdefault(int(torch_cuda.split(".")[0]), f"torch is built for CUDA {torch_cuda}")
    runtime = environment.modules.get("cupy_backends.cuda.api.runtime")
    if runtime is not None:
        # Reads the version of the linked runtime without calling the driver or starting CUDA.
        version = runtime.runtimeGetVersion()  # type: ignore[attr-defined]
        majors.setdefault(version // 1000, f"CuPy uses CUDA {version // 1000}")
    return majors


def majors_installed(environment: Environment) -> dict[int, str]:
    """Return the CUDA major versions of installed packages, each with the evidence for it."""
    majors: dict[int, str] = {}
    for major in (13, 12):
        names = (f"cupy-cuda{major}x", f"nvidia-cuda-runtime-cu{major}", "nvidia-cuda-runtime")
        for name in names:
            version = environment.version_of(name)
            if version and (name != "nvidia-cuda-runtime" or version.startswith(f"{major}.")):
                majors.setdefault(major, f"{name} {version} is installed")
    return majors


def locate_libcupti(environment: Environment | None = None) -> CuptiLibrary:
    """Return the libcupti to use in this process.

    A loaded libcupti is always used, because two in one process interfere with each other.
    Otherwise the CUDA major version must be one that the process uses. If it uses none yet, the
    version of installed packages is preferred, then the newest version.

    Raises
    ------
    CuptiNotFoundError
        If there is none. The message names the version, the searched directories and the package
        to install.
    """
    environment = environment or Environment.current()
    in_use = majors_in_use(environment)
    loaded = [
        CuptiLibrary(path, cuda_major_of(Path(path)), "loaded in this process")
        for path in environment.mapped
        if _CUPTI_FILE.fullmatch(Path(path).name)
    ]
    if loaded:
        return next((library for library in loaded if library.cuda_major in in_use), loaded[0])
    candidates = list(_candidates(environment))
    if in_use:
        # If a process uses two CUDA versions, the newer CUPTI knows the records of both.
        for major in sorted(in_use, reverse=True):
            for library in candidates:
                if library.cuda_major == major:
                    return library
        raise _not_found(environment, candidates, in_use)
    installed = majors_installed(environment)
    if not candidates:
        raise _not_found(environment, candidates, installed)
    return max(
        candidates, key=lambda library: (library.cuda_major in installed, library.cuda_major)
    )


def find_driver(environment: Environment | None = None, *, load: bool = True) -> str | None:
    """Return the path of NVIDIA's driver library, libcuda.so.1, or None if there is none.

    If `load` is true, the library is loaded if necessary. This does not start CUDA; only ``cuInit``
    does.
    """
    if environment is not None:
        return _mapped_driver(environment.mapped)
    if _loaded:  # nothing unloads it
        return _loaded[0]
    path = _mapped_driver(mapped_files())
    if path is None and load:
        try:
            ctypes.CDLL(DRIVER)
        except OSError:
            return None
        path = _mapped_driver(mapped_files())
    if path is not None:
        _loaded.append(path)
    return path


_loaded: list[str] = []
"""Path of the driver's library, once it is known: to read the maps takes milliseconds."""


def _mapped_driver(mapped: tuple[str, ...]) -> str | None:
    return next((path for path in mapped if _DRIVER_FILE.fullmatch(Path(path).name)), None)


def cuda_major_of(library: Path) -> int:
    """Return the CUDA major version of a libcupti file; 0 if it cannot be determined."""
    match = _CUPTI_FILE.fullmatch(library.name)
    if match and int(match[2]) < _FIRST_YEAR:
        return int(match[2])
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
            soname = _SONAME.search(m)
            return int(soname[1]) if soname else 0
    except (OSError, ValueError):
        return 0


def _search_directories(environment: Environment) -> Iterator[tuple[Path, str]]:
    """Yield the directories to search, in order of preference, with the origin of each."""
    for directory in environment.import_path:
        for below, wheel in _WHEELS.items():
            yield directory / below, f"wheel {wheel} {environment.version_of(wheel) or ''}".strip()
    homes = [
        environment.environ[name]
        for name in ("CUDA_HOME", "CUDA_PATH")
        if environment.environ.get(name)
    ]
    local = environment.root / "usr/local"
    toolkits = [Path(home) for home in homes] + [
        local / "cuda",
        *sorted(local.glob("cuda-*"))[::-1],
    ]
    for toolkit in toolkits:
        for below in ("extras/CUPTI/lib64", "lib64"):
            yield toolkit / below, f"CUDA toolkit {toolkit}"
    for directory in environment.import_path:
        yield directory / "torch/lib", "PyTorch"
    for prefix in (environment.environ.get("CONDA_PREFIX"), str(environment.prefix)):
        if prefix:
            yield Path(prefix) / "lib", f"environment {prefix}"
    for entry in environment.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if entry:
            yield Path(entry), "LD_LIBRARY_PATH"
    for name in _SYSTEM_DIRECTORIES:
        yield environment.root / name, "system"


def _candidates(environment: Environment) -> Iterator[CuptiLibrary]:
    seen: set[Path] = set()
    for directory, origin in _search_directories(environment):
        for library in sorted(directory.glob("libcupti*.so.*")):
            real = library.resolve()
            if _CUPTI_FILE.fullmatch(library.name) and real.is_file() and real not in seen:
                seen.add(real)
                yield CuptiLibrary(str(library), cuda_major_of(library), origin)


def _not_found(
    environment: Environment, candidates: list[CuptiLibrary], required: Mapping[int, str]
) -> CuptiNotFoundError:
    if required:
        major = max(required)
        what = f"no libcupti for CUDA {major} was found ({required[major]})"
    else:
        major = 13
        what = "no libcupti was found"
    if major < _OLDEST_MAJOR:
        return CuptiNotFoundError(
            f"GPU activity cannot be recorded: this process uses CUDA {major} "
            f"({required[major]}), and recording needs CUDA {_OLDEST_MAJOR} or newer. Install "
            f"packages for CUDA {_OLDEST_MAJOR} or 13 (for example PyTorch or CuPy), then restart "
            "the kernel."
        )
    directories = (str(directory) for directory, _ in _search_directories(environment))
    searched = ", ".join(dict.fromkeys(directories))
    others = "".join(f" Found instead: {f.path} for CUDA {f.cuda_major}." for f in candidates)
    package = (
        "nvidia-cuda-cupti-cu12" if major == 12 else f"nvidia-cuda-cupti>={major},<{major + 1}"
    )
    return CuptiNotFoundError(
        f"GPU activity cannot be recorded: {what}.{others} Install it with: pip install "
        f'"{package}" (or, with CuPy, pip install "epprof-nb[cuda{major}]"), then restart the '
        f"kernel. Searched the process and: {searched}."
    )
