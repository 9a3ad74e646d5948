"""Finding the libcupti that fits the CUDA of this process, without starting CUDA."""

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MAPS = Path("/proc/self/maps")
_CUPTI_FILE = re.compile(r"libcupti(-[0-9a-f]+)?\.so\.(\d+)[.\d]*")
_CUDA_FILE = re.compile(r"lib(?:cudart|nvrtc|cublas|cublasLt)(?:-[0-9a-f]+)?\.so\.(\d+)[.\d]*")
_SONAME = re.compile(rb"\0libcupti\.so\.(\d{1,3})\0")
_DRIVER_FILE = re.compile(r"libcuda\.so(\.\d+)*")
# Toolkits name the file by year (libcupti.so.2025.3.1), wheels by CUDA's major (libcupti.so.13).
_FIRST_YEAR = 2000
_OLDEST_MAJOR = 12
_SYSTEM_DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64")
_WHEELS = {
    "nvidia/cuda_cupti/lib": "nvidia-cuda-cupti-cu12",
    "nvidia/cu13/lib": "nvidia-cuda-cupti",
}


class CuptiNotFoundError(CaptureError):
    """No libcupti that fits this process was found."""


@dataclass(frozen=True, slots=True)
class Found:
    """A libcupti: its path, the major version of the CUDA it belongs to, and where it is from."""

    path: str
    cuda_major: int
    origin: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the search looks at; tests give their own.

    Attributes
    ----------
    mapped : tuple of str
        Files mapped into the process.
    environ : mapping of str to str
        Environment variables.
    import_path : tuple of Path
        Directories that packages are imported from.
    root : Path
        Root of the file system, for the places where toolkits are installed.
    prefix : Path
        The Python environment.
    modules : mapping of str to object
        Modules that are imported already.
    version_of : callable
        From a distribution's name to its version, None if it is not installed.
    """

    mapped: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    import_path: tuple[Path, ...] = ()
    root: Path = Path("/")
    prefix: Path = Path("/nowhere")
    modules: Mapping[str, object] = field(default_factory=dict)
    version_of: Callable[[str], str | None] = lambda _: None

    @classmethod
    def current(cls) -> Surroundings:
        """Return those of this process, now."""
        return cls(
            mapped=mapped_files(),
            environ=os.environ,
            import_path=tuple(Path(entry) for entry in sys.path if entry),
            prefix=Path(sys.prefix),
            modules=sys.modules,
            version_of=distribution_version,
        )


def distribution_version(name: str) -> str | None:
    """Return the version of an installed distribution, None if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def mapped_files() -> tuple[str, ...]:
    """Return the files mapped into this process, libraries among them, each once."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ()
    # Five columns, then the path; anonymous mappings have none.
    parts = (line.split(maxsplit=5) for line in lines)
    return tuple(dict.fromkeys(part[5] for part in parts if len(part) == 6 and part[5][0] == "/"))


def majors_in_use(around: Surroundings) -> dict[int, str]:
    """Return the CUDA major versions this process uses already, each with what says so."""
    majors: dict[int, str] = {}
    for path in around.mapped:
        match = _CUDA_FILE.fullmatch(Path(path).name)
        if match:
            majors.setdefault(int(match[1]), f"{Path(path).name} is loaded")
    torch_cuda = getattr(getattr(around.modules.get("torch"), "version", None), "cuda", None)
    if isinstance(torch_cuda, str):
        majors.setdefault(int(torch_cuda.split(".")[0]), f"torch is built for CUDA {torch_cuda}")
    runtime = around.modules.get("cupy_backends.cuda.api.runtime")
    if runtime is not None:
        # The version of the runtime CuPy was linked to: it asks no driver and starts nothing.
        version = runtime.runtimeGetVersion()  # type: ignore[attr-defined]
        majors.setdefault(version // 1000, f"CuPy uses CUDA {version // 1000}")
    return majors


def majors_installed(around: Surroundings) -> dict[int, str]:
    """Return the CUDA major versions that installed packages are made for, likewise."""
    majors: dict[int, str] = {}
    for major in (13, 12):
        names = (f"cupy-cuda{major}x", f"nvidia-cuda-runtime-cu{major}", "nvidia-cuda-runtime")
        for name in names:
            version = around.version_of(name)
            if version and (name != "nvidia-cuda-runtime" or version.startswith(f"{major}.")):
                majors.setdefault(major, f"{name} {version} is installed")
    return majors


def find(around: Surroundings | None = None) -> Found:
    """Return the libcupti to use in this process.

    One that is loaded already is always taken: two in one process disturb each other. Otherwise
    it must be of the CUDA major version that the process uses; where it uses none yet, of the
    one that installed packages are made for, or else the newest there is.

    Raises
    ------
    CuptiNotFoundError
        Says which version was looked for, where, and what to install.
    """
    around = around or Surroundings.current()
    in_use = majors_in_use(around)
    loaded = [
        Found(path, major_of(Path(path)), "loaded in this process")
        for path in around.mapped
        if _CUPTI_FILE.fullmatch(Path(path).name)
    ]
    if loaded:
        return next((found for found in loaded if found.cuda_major in in_use), loaded[0])
    available = list(_available(around))
    if in_use:
        # With two CUDA versions in one process, the newer CUPTI knows the records of both.
        for major in sorted(in_use, reverse=True):
            for found in available:
                if found.cuda_major == major:
                    return found
        raise _not_found(around, available, in_use)
    wanted = majors_installed(around)
    if not available:
        raise _not_found(around, available, wanted)
    return max(available, key=lambda found: (found.cuda_major in wanted, found.cuda_major))


def find_driver(around: Surroundings | None = None, *, load: bool = True) -> str | None:
    """Return the path of NVIDIA's driver library, libcuda.so.1; None where there is none.

    One that is not in the process yet is loaded if `load` is true. That starts nothing: CUDA
    starts with ``cuInit``.
    """
    found = _mapped_driver(around.mapped if around else mapped_files())
    if found is None and load and around is None:
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            return None
        found = _mapped_driver(mapped_files())
    return found


def _mapped_driver(mapped: tuple[str, ...]) -> str | None:
    return next((path for path in mapped if _DRIVER_FILE.fullmatch(Path(path).name)), None)


def major_of(library: Path) -> int:
    """Return the CUDA major version of a libcupti file; 0 where nothing tells it."""
    match = _CUPTI_FILE.fullmatch(library.name)
    if match and int(match[2]) < _FIRST_YEAR:
        return int(match[2])
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
            soname = _SONAME.search(m)
            return int(soname[1]) if soname else 0
    except (OSError, ValueError):
        return 0


def _places(around: Surroundings) -> Iterator[tuple[Path, str]]:
    """Yield the directories to look in, best first, and what each is."""
    for directory in around.import_path:
        for below, wheel in _WHEELS.items():
            yield directory / below, f"wheel {wheel} {around.version_of(wheel) or ''}".strip()
    homes = [
        around.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if around.environ.get(name)
    ]
    local = around.root / "usr/local"
    toolkits = [Path(home) for home in homes] + [
        local / "cuda",
        *sorted(local.glob("cuda-*"))[::-1],
    ]
    for toolkit in toolkits:
        for below in ("extras/CUPTI/lib64", "lib64"):
            yield toolkit / below, f"CUDA toolkit {toolkit}"
    for directory in around.import_path:
        yield directory / "torch/lib", "PyTorch"
    for prefix in (around.environ.get("CONDA_PREFIX"), str(around.prefix)):
        if prefix:
            yield Path(prefix) / "lib", f"environment {prefix}"
    for entry in around.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if entry:
            yield Path(entry), "LD_LIBRARY_PATH"
    for name in _SYSTEM_DIRECTORIES:
        yield around.root / name, "system"


def _available(around: Surroundings) -> Iterator[Found]:
    seen: set[Path] = set()
    for directory, origin in _places(around):
        for library in sorted(directory.glob("libcupti*.so.*")):
            real = library.resolve()
            if _CUPTI_FILE.fullmatch(library.name) and real.is_file() and real not in seen:
                seen.add(real)
                yield Found(str(library), major_of(library), origin)


def _not_found(
    around: Surroundings, available: list[Found], wanted: Mapping[int, str]
) -> CuptiNotFoundError:
    if wanted:
        major = max(wanted)
        what = f"no libcupti of CUDA {major} was found ({wanted[major]})"
    else:
        major = 13
        what = "no libcupti was found"
    if major < _OLDEST_MAJOR:
        return CuptiNotFoundError(
            f"GPU activity cannot be recorded: this process uses CUDA {major} ({wanted[major]}), "
            f"and recording needs CUDA {_OLDEST_MAJOR} or newer. Install packages made for CUDA "
            f"{_OLDEST_MAJOR} or 13, as those of PyTorch or CuPy, then restart the kernel."
        )
    looked = ", ".join(dict.fromkeys(str(directory) for directory, _ in _places(around)))
    others = "".join(f" Found instead: {f.path} of CUDA {f.cuda_major}." for f in available)
    package = (
        "nvidia-cuda-cupti-cu12" if major == 12 else f"nvidia-cuda-cupti>={major},<{major + 1}"
    )
    return CuptiNotFoundError(
        f"GPU activity cannot be recorded: {what}.{others} Install it with: pip install "
        f'"{package}" (or, with CuPy, pip install "epprof-nb[cuda{major}]"), then restart the '
        f"kernel. Looked in the process and in: {looked}."
    )
