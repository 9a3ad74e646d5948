"""Background process that learns what recording costs on this machine, once.

With `GpuProfile.estimate_added`, profiles of cells without warm-ups then say what profiling added.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from epprof_nb.data.recording_costs import LAUNCH, MODULE, OP, costs_of
from epprof_nb.notebook.background_process import BackgroundProcess

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_COMMAND = (sys.executable, "-m", "epprof_nb.cli", "learn-costs", "--until-eof")
_SECONDS = 120
_FREE_BYTES = 4 * 2**30
"""Minimum free memory of a GPU for a further process to launch kernels on it."""

COSTS = BackgroundProcess(_COMMAND, _SECONDS)
"""The process that learns the costs, started by this process."""


def learn_missing_costs(info: Mapping[str, Any]) -> bool:
    """Start to learn the costs that a profile's info lacks; return whether it started."""
    options = missing_costs(info, has_torch="torch" in sys.modules)
    return options is not None and COSTS.start(*options)


def missing_costs(info: Mapping[str, Any], *, has_torch: bool) -> list[str] | None:
    """Return the options of ``epprof learn-costs`` for the missing costs; None if none is.

    Examples
    --------
    >>> missing_costs({}, has_torch=True)
    ['--modules']
    >>> missing_costs({"recording_costs": {"op": 300}}, has_torch=False)
    """
    known = costs_of(info)
    options = []
    if has_torch and MODULE not in known:
        options.append("--modules")
    if LAUNCH not in known and _has_room(info):
        options.append("--gpu")
    return options if options or OP not in known else None


def _has_room(info: Mapping[str, Any]) -> bool:
    """Return whether the profile used a GPU, and the first one has free memory."""
    if not any(device.get("kind") == "gpu" for device in info.get("devices") or ()):
        return False
    gpus = ((info.get("gpu") or {}).get("after") or {}).get("gpus") or [{}]
    used, total = (gpus[0].get(f"memory_{name}_bytes") for name in ("used", "total"))
    return used is not None and total is not None and total - used >= _FREE_BYTES
