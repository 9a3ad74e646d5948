"""Profiles of a machine without a GPU: what their info has, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OF_JOB = "is_cell_of_job"
"""Entry of the info of the process that ran a job, whose other processes may have a GPU."""
NO_GPU = "No GPU was found: run epprof doctor to see why."


def has_no_gpu(info: Mapping[str, Any]) -> bool:
    """Whether the `Profile.info` is of a machine without a GPU."""
    return "no_gpu" in info and not is_cell_of_job(info)


def is_cell_of_job(info: Mapping[str, Any]) -> bool:
    """Whether it is of the process that ran a job, such as the notebook of a cluster."""
    return info.get(OF_JOB) is True


def is_first_without_gpu(info: Mapping[str, Any]) -> bool:
    """Whether it is the first such profile of its process, whose headline says `NO_GPU`."""
    search = info.get("no_gpu")
    return (
        not is_cell_of_job(info) and isinstance(search, Mapping) and search.get("is_first") is True
    )
