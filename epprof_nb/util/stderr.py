"""Messages on stderr that change nothing else about a script."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def say(text: str, *, prefix: str = "epprof: ") -> None:
    """Print a message to stderr, if it can be written to.

    The message bypasses the buffer. If it remained there, the interpreter would fail to flush it
    at exit and change the exit code of the script.
    """
    stream = sys.stderr
    with suppress(Exception):
        try:
            number = stream.fileno()
        except (AttributeError, OSError, ValueError):  # replaced by the script, closed or None
            stream.write(f"{prefix}{text}\n")
            return
        stream.flush()
        data = f"{prefix}{text}\n".encode(stream.encoding or "utf-8", "backslashreplace")
        while data:
            data = data[os.write(number, data) :]
