"""Frameworks whose operations a profile could record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def records_framework(info: Mapping[str, Any], name: str) -> bool:
    """Return whether the option ``frameworks`` of a recording has a framework; True if unknown.

    Examples
    --------
    >>> records_framework({"recording": {"frameworks": ["jax"]}}, "torch")
    False
    """
    recording = info.get("recording")
    frameworks = recording.get("frameworks") if isinstance(recording, dict) else None
    return not isinstance(frameworks, list) or name in frameworks
