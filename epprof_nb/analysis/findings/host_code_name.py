"""The name of the code that the host ran, by the innermost line of the user in samples of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.stack_lines import StackLines, short_function
from epprof_nb.analysis.findings.finding import code, launcher_name
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import base_name

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex


def host_code_name(index: ProfileIndex, stack: int) -> str:
    """Return the name of a frame, as ``augment (data.py:12)``.

    A line outside of functions is named as statements are, as ``line 3 (`x = f()`)``.

    Parameters
    ----------
    index
        Index of the profile.
    stack
        A row of ``stacks``; `MISSING` gives the empty text.
    """
    if stack == MISSING:
        return ""
    lines = index.cached(StackLines)
    at = np.array([stack])
    (function,), (file,) = lines.function.take(at).to_list(), lines.file.take(at).to_list()
    name = short_function(function or "<module>")
    if name == "<module>":
        return launcher_name(index, stack, MISSING)
    return f"{code(name)} ({base_name(file or '')}:{int(lines.line[stack])})"
