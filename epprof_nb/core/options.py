"""Options of a session: what to record, and limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

Detail = Literal["default", "api", "memory", "overhead", "operators", "shapes", "all"]
DETAILS: tuple[Detail, ...] = get_args(Detail)

_NOT_IN_ALL = ("operators", "shapes")
"""Details that slow the code down. They are recorded only if they are named."""

OrtNodes = Literal["off", "auto", "every"]
ORT_NODES: tuple[OrtNodes, ...] = ("off", "auto", "every")
"""Modes of recording ONNX Runtime's nodes, by how much they record."""


FRAMEWORKS = ("torch", "jax", "triton", "numba", "cupy", "nvtx", "dask")
"""Frameworks whose operations can be recorded as ops."""


def check_ort_nodes(value: str) -> OrtNodes:
    """Return a mode of recording ONNX Runtime's nodes; ValueError if it is unknown."""
    for mode in ORT_NODES:
        if value == mode:
            return mode
    raise ValueError(f"unknown mode {value!r} of ONNX Runtime nodes; choose every, auto or off")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a session.

    Parameters
    ----------
    detail
        ``"default"`` records kernels, copies, memsets, synchronizations, and the driver calls
        that cause them. ``"api"`` adds all runtime and driver calls, ``"memory"`` allocations and
        releases, and the blocks of PyTorch's memory with their ops, ``"overhead"`` CUPTI's own
        overhead. ``"all"`` records all of these.
        ``"operators"`` adds the operators of PyTorch as ops, ``"shapes"`` also the shapes of their
        inputs; ``"all"`` does not include them, because they slow the code down. Separate several
        values with commas.
    max_records
        Maximum number of records (activities, allocations, calls and so on); further ones are
        dropped and counted.
    time_limit_s
        Seconds after which recording stops while the code continues; None for no limit.
    ort_nodes
        Which runs of ONNX Runtime sessions are recorded node by node: ``"every"``, ``"auto"`` or
        ``"off"`` (`epprof_nb.onnxruntime.install` describes them); None for the mode set there.
    frameworks
        Frameworks whose operations are recorded as ops, if the code uses them: ``"torch"`` for
        the modules, backward passes, optimizers and data loaders of PyTorch, ``"jax"`` for the
        jitted functions, compilations, waits and transfers of JAX, ``"triton"``, ``"numba"`` and
        ``"cupy"`` for the file and line of kernels that are written in Python, ``"nvtx"`` for the
        ranges and marks of NVTX in any library, ``"dask"`` for the tasks that Dask runs in this
        process. Empty for none.
    stacks
        Record the Python stack of each launch and wait.
    samples
        Sample which Python code the host runs between launches: about 100 times a second, and
        more often at first.
    own, library
        Folders, files or names of packages to treat as your code, or as a library's, when the line
        of a launch is looked up: it is the innermost line of your code. By default, your code is
        cells, files below the working directory and the script's folder, and editable installs.
    """

    detail: str = "default"
    max_records: int = 5_000_000
    time_limit_s: float | None = None
    ort_nodes: str | None = None
    frameworks: tuple[str, ...] = FRAMEWORKS
    stacks: bool = True
    samples: bool = True
    own: tuple[str, ...] = ()
    library: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = sorted(self.details - set(DETAILS))
        if unknown:
            raise ValueError(
                f"unknown detail {', '.join(map(repr, unknown))}; "
                f"choose one or more of {', '.join(DETAILS)}, separated by commas"
            )
        if not self.details:
            raise ValueError(
                f"detail {self.detail!r} is empty; choose one or more of "
                f"{', '.join(DETAILS)}, separated by commas"
            )
        if self.max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {self.max_records}")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be more than 0, not {self.time_limit_s}")
        unknown = sorted(set(self.frameworks) - set(FRAMEWORKS))
        if unknown:
            raise ValueError(
                f"unknown framework {', '.join(map(repr, unknown))}; "
                f"choose from {', '.join(FRAMEWORKS)}; [] records none"
            )
        if self.ort_nodes is not None:
            check_ort_nodes(self.ort_nodes)

    @property
    def details(self) -> frozenset[str]:
        """The values in `detail`."""
        return frozenset(part.strip() for part in self.detail.split(",") if part.strip())

    def union(self, other: Options) -> Options:
        """Return options that record the details of both; other limits come from `self`."""
        parts = [part for part in DETAILS[1:-1] if self.records(part) or other.records(part)]
        return replace(
            self,
            detail=",".join(parts) or "default",
            max_records=max(self.max_records, other.max_records),
            frameworks=tuple(dict.fromkeys([*self.frameworks, *other.frameworks])),
            stacks=self.stacks or other.stacks,
            samples=self.samples or other.samples,
        )

    def records(self, part: str) -> bool:
        """Whether `part`, one of `DETAILS`, is recorded."""
        if part == "operators" and "shapes" in self.details:
            return True
        return part in self.details or (part not in _NOT_IN_ALL and "all" in self.details)
