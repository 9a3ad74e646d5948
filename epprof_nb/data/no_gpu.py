"""Profiles of a machine without a GPU: what their info has, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_GPU = "No GPU was found: run epprof doctor to see why."


def has_no_gpu(info: Mapping[str, Any]) -> bool:
    """Whether the `Profile.info` is of a machine without a GPU."""
    return "no_gpu" in info


def is_first_without_gpu(info: Mapping[str, Any]) -> bool:
    """Whether it is the first such profile of its process, whose headline says `NO_GPU`."""
    search = info.get("no_gpu")
    return isinstance(search, Mapping) and search.get("is_first") is True
