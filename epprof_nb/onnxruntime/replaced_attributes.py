"""Attributes of ONNX Runtime that were replaced, to restore them."""

from __future__ import annotations

from typing import Any

REPLACED: list[tuple[Any, str, Any]] = []
"""Owner, name and original value of each replaced attribute."""


def replace(owner: Any, name: str, value: object) -> None:  # noqa: ANN401
    """Replace an attribute of a class or module."""
    REPLACED.append((owner, name, vars(owner)[name]))
    setattr(owner, name, value)


def restore() -> None:
    """Restore all attributes."""
    while REPLACED:
        owner, name, value = REPLACED.pop()
        setattr(owner, name, value)
