r"""Controls of the direction of text, which show a name as another one.

Names in data keep them. Views show them as escapes, such as ``\u202e``.
"""

from __future__ import annotations

import re

_CONTROL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_JSON_ESCAPE = re.compile(r"\\(?:\\|u(?:061c|200[ef]|202[a-e]|206[6-9]))")


def with_visible_directions(text: str) -> str:
    r"""Return a text with its controls of direction escaped.

    Examples
    --------
    >>> print(with_visible_directions("txt.\u202eexe"))
    txt.\u202eexe
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_with_visible_directions(text: str) -> str:
    r"""Return ASCII JSON with the controls of direction in its texts escaped.

    Examples
    --------
    >>> import json
    >>> print(json.loads(json_with_visible_directions(json.dumps("a\u202e\\u202e"))))
    a\u202e\u202e
    """
    # A pair of backslashes is a character of its own, so that what follows it is no escape.
    return _JSON_ESCAPE.sub(lambda found: found[0] if found[0] == r"\\" else "\\" + found[0], text)
