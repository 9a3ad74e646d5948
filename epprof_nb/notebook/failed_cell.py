"""The explanation below a cell that ended in an out-of-memory error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.display import display

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.data.out_of_memory_explanation import Explanation


class OutOfMemoryOutput:
    """The output of an explanation, as text and as HTML."""

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        from epprof_nb.views.renderers.out_of_memory_text import as_html, as_text

        return {
            "text/plain": as_text(self._explanation, in_notebook=True),
            "text/html": as_html(self._explanation, in_notebook=True),
        }


def show_explanation(
    error: BaseException, variables: Mapping[str, object], failures_before: int
) -> None:
    """Explain an error below the cell if it is an out-of-memory error.

    Parameters
    ----------
    error
        The error that ended the cell.
    variables
        Variables of the notebook.
    failures_before
        Number of failed allocations of torch before the cell.
    """
    from epprof_nb.recording.out_of_memory.recognize_errors import allocation_error

    if allocation_error(error) is None:  # most errors; the rest need not be imported
        return
    from epprof_nb.recording.out_of_memory.explain_error import explain

    explanation = explain(error, variables, failures_before=failures_before)
    if explanation is not None:
        display(OutOfMemoryOutput(explanation))
