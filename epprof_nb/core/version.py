"""Version of the installed package."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def package_version() -> str:
    """Return the version in the package's metadata, or ``"unknown"`` if it is not installed."""
    try:
        return metadata.version("epprof-nb")
    except metadata.PackageNotFoundError:
        return "unknown"
