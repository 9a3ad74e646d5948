"""Messages of the profiler in a notebook."""

from __future__ import annotations

import sys


def warn(text: str) -> None:
    """Print a message of the profiler to stderr, apart from the output of the code."""
    print(f"epprof_nb: {text}", file=sys.stderr)
