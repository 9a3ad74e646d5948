r"""Control characters: a terminal obeys them, and those of direction show a name as another one.

Names in data keep them. Views show them as escapes, such as ``\x1b`` and ``\u202e``.
"""

from __future__ import annotations

import json
import re

_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_JSON_ESCAPE = re.compile(r"\\(?:[\\bf]|u(?:00[0189][0-9a-f]|007f|061c|200[ef]|202[a-e]|206[6-9]))")


def with_visible_controls(text: str) -> str:
    r"""Return a text with its control characters escaped, but no white space.

    Examples
    --------
    >>> print(with_visible_controls("txt.\u202eexe\x1b[2J"))
    txt.\u202eexe\x1b[2J
    """
    return _CONTROL.sub(_escape, text)


def json_with_visible_controls(text: str) -> str:
    r"""Return ASCII JSON with the control characters in its texts escaped.

    Examples
    --------
    >>> import json
    >>> print(json.loads(json_with_visible_controls(json.dumps("a\u202e\\u202e\x1b\b"))))
    a\u202e\u202e\x1b\x08
    """
    # JSON leaves this one as it is. A pair of backslashes is a character of its own, so that what
    # follows it is no escape.
    return _JSON_ESCAPE.sub(_json_escape, text.replace("\x7f", r"\u007f"))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _json_escape(found: re.Match[str]) -> str:
    if found[0] == r"\\":
        return found[0]
    control: str = json.loads(f'"{found[0]}"')
    return "\\" + control.encode("unicode_escape").decode()
