"""Texts and data in HTML."""

from __future__ import annotations

import base64
from html import escape


def with_code(text: str) -> str:
    """Return HTML of a text in which `backticks` mark code.

    Examples
    --------
    >>> with_code("Line 3 (`a < b`) waits")
    'Line 3 (<code>a &lt; b</code>) waits'
    """
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def to_base64(data: bytes) -> str:
    """Return `data` as base64 text. It needs no escaping in HTML."""
    return base64.b64encode(data).decode("ascii")
