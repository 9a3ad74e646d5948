"""Single arguments of ops, by which tables group them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import Argument, argument_names, arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table


def given_arguments(ops: Table, names: Iterable[str]) -> list[Argument]:
    """Return single arguments of all ops.

    Raises
    ------
    ValueError
        If no op has an argument of one of the names.
    """
    names = [names] if isinstance(names, str) else list(names)
    texts, every_row = ops.names("args"), np.arange(len(ops))
    found = arguments(texts, every_row, names)
    for argument in found:
        if not len(argument.distinct):
            known = ", ".join(map(repr, argument_names(texts, every_row)[:20])) or "none"
            raise ValueError(
                f"no op of this profile has an argument {argument.name!r}; arguments are: {known}. "
                'Ops get arguments by `with epprof_nb.op("name", argument=value):`.'
            )
    return found


def argument_at(argument: Argument, rows: IntArray, last: int) -> Argument:
    """Return an argument at `rows`, followed by a missing value for a last row."""
    codes = np.append(argument.codes[rows], np.full(last, MISSING, np.int32))
    return Argument(argument.name, codes, argument.distinct)
