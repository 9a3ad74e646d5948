"""Notes on profile files of runs that ONNX Runtime did not write."""

from __future__ import annotations

from collections import Counter

from epprof_nb.util.format import plural

# Runs by the prefix of their file.
_written: Counter[str] = Counter()
_missing: Counter[str] = Counter()


def clear() -> None:
    """Discard the counts of earlier recordings."""
    _written.clear()
    _missing.clear()


def count(prefix: str, *, written: bool) -> None:
    """Count a run whose file ONNX Runtime did not write; `written` if this package wrote it."""
    (_written if written else _missing)[prefix] += 1


def notes() -> list[str]:
    """Return a note for each prefix."""
    return [
        *(
            f"{plural(runs, 'profile file')} {prefix}_*.json of runs written by epprof_nb: ONNX "
            "Runtime does not write them while it profiles the whole session."
            for prefix, runs in _written.items()
        ),
        *(
            f"{plural(runs, 'run')} without a profile file: {prefix}_*.json cannot be written. "
            "Pass a profile_file_prefix in a folder that exists and is writable."
            for prefix, runs in _missing.items()
        ),
    ]
