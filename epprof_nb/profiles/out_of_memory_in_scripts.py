"""The explanation of an out-of-memory error that ends a script or a ``with profile()``."""

from __future__ import annotations

import sys
from contextlib import suppress

from epprof_nb.recording.out_of_memory.recognize_errors import class_name, message_of


def print_explanation(error: BaseException, failures_before: int) -> None:
    """Print what `explained` returns to stderr, if it can be written to."""
    text, stream = explained(error, failures_before), sys.stderr
    if text is not None:
        with suppress(Exception):  # None, closed, or full: the error matters more
            encoding = getattr(stream, "encoding", None) or "utf-8"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def explained(error: BaseException, failures_before: int) -> str | None:
    """Return the explanation of an error of a script as text; None for other errors.

    `failures_before` is the value of `torch_failures.failures` before the code ran. It never raises
    an exception: the text has the problem.
    """
    try:
        from epprof_nb.recording.out_of_memory.explain_error import explain
        from epprof_nb.views.renderers.out_of_memory_text import as_text

        made = explain(error, failures_before=failures_before)
        return None if made is None else as_text(made, in_notebook=False)
    except BaseException as failure:  # noqa: BLE001 - Ctrl-C, too: the error matters more
        reason = ": ".join(filter(None, (class_name(type(failure)), message_of(failure))))
        return f"The out-of-memory error could not be explained ({reason})."
