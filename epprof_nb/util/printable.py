"""Text that the standard output can show: a terminal without UTF-8 lacks some characters."""

from __future__ import annotations

import sys

from epprof_nb.util.text_controls import with_visible_controls

_SUBSTITUTES = str.maketrans({"µ": "u", "·": "|", "→": "->", "…": "...", "▸": ">"})


def printable(text: str) -> str:
    """Return text without the characters that the standard output cannot encode or display as is.

    IPython prints the text of a display outside of notebooks, and would fail on such a character.
    """
    text = with_visible_controls(text).replace("\r", r"\r")  # which would overwrite the line
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_SUBSTITUTES).encode(encoding, "replace").decode(encoding)
    return text
