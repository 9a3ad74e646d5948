"""Rank of this process, as its launcher stated it in the environment: torchrun, MPI or Slurm."""

from __future__ import annotations

import hashlib
import os

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
_LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
_WORLD_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
RUN_VARIABLES = (
    "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_STEP_ID",
)  # fmt: skip
"""Variables by which launchers name a run."""
_MAX_DIGITS = 9


def rank() -> int | None:
    """Return the rank of this process; None if no launcher gave it one."""
    return _number(_RANKS)


def local_rank() -> int | None:
    """Return the rank among the processes of this machine; None if it is not stated."""
    return _number(_LOCAL_RANKS)


def world_size() -> int | None:
    """Return the number of ranks; None if it is not stated."""
    return _number(_WORLD_SIZES, 1)


def run_id() -> str:
    """Return a digest of the name that the run has on all hosts; "" if the launcher gives none."""
    # Without an id of the user, torchrun states "none" for each run.
    is_named = os.environ.get("TORCHELASTIC_RUN_ID", "none") not in ("", "none")
    if rank() is None or not (is_named or os.environ.get("SLURM_JOB_ID")):
        return ""
    stated = "\n".join(os.environ.get(name, "") for name in RUN_VARIABLES)
    return hashlib.sha256(stated.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def is_one_of_several() -> bool:
    """Whether a launcher started this process as a rank.

    torchrun's ``RANK`` counts in any case; Slurm numbers processes that run alone, too.
    """
    return "RANK" in os.environ or (rank() is not None and (world_size() or 1) > 1)


def variable() -> str | None:
    """Return a variable that the launcher of the ranks sets for ranks only; None without one."""
    # Schedulers of clusters may set RANK for the launcher, too.
    return next((name for name in (*_LOCAL_RANKS, *_RANKS) if name in os.environ), None)


def _number(names: tuple[str, ...], least: int = 0) -> int | None:
    for name in names:
        value = os.environ.get(name, "")
        if value.isdecimal() and len(value) <= _MAX_DIGITS and int(value) >= least:
            return int(value)
    return None
