"""Finding on another process whose kernels ran on the same GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import Finding
from epprof_nb.arrays.intervals import length
from epprof_nb.util.format import percent, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex


def shared_device(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each GPU on which other processes ran kernels during the profile.

    While a GPU runs the kernels of one process, kernels of other processes wait.
    """
    info = index.profile.info
    gpus, devices = _gpus(info), info.get("devices")
    # NVML may number the GPUs differently from this process, and may see more of them.
    if len(gpus) != 1 or not isinstance(devices, list) or len(devices) != 1:
        return
    others = [other for other in _others(gpus[0]) if other["sm_percent"] > 0]
    share = min(sum(other["sm_percent"] for other in others) / 100, 1.0)
    if not others:
        return
    wall_ns, busy_ns = wall_of(index.profile), length(*index.busy())
    main = max(others, key=lambda other: float(other["sm_percent"]))
    name = f"process {main['pid']}" + (f" and {len(others) - 1} more" if len(others) > 1 else "")
    memory = main.get("memory_bytes")
    holds = f", and holds {size(memory)} of its memory" if isinstance(memory, int) else ""
    yield Finding(
        f"Another program uses the GPU: {name} ran kernels for {percent(share)} of the time"
        f"{holds}.",
        # Work of this process can only wait while it has some.
        int(share * min(busy_ns, wall_ns)),
        0,
        wall_ns,
        kind="shared device",
        remedy=f"Stop it (`ps -p {main['pid']}`; in Jupyter, shut down kernels that are not used), "
        "or use another GPU (`CUDA_VISIBLE_DEVICES`).",
    )


def _gpus(info: dict[str, Any]) -> list[dict[str, Any]]:
    state = info.get("gpu")
    after = state.get("after") if isinstance(state, dict) else None
    gpus = after.get("gpus") if isinstance(after, dict) else None
    return [gpu for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []


def _others(gpu: dict[str, Any]) -> list[dict[str, Any]]:
    others = gpu.get("other_processes")
    return [
        other
        for other in (others if isinstance(others, list) else ())
        if isinstance(other, dict)
        and isinstance(other.get("pid"), int)
        and isinstance(other.get("sm_percent"), int | float)
    ]
