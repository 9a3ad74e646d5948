"""Arguments of ops: hashable dicts, and single arguments as columns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from epprof_nb.data.names import CategoryColumn


class Arguments(dict[str, Any]):
    """The arguments of an op: an immutable dict that can be hashed and sorted.

    Rows with equal arguments share one object. pandas can group and merge by a column of these.

    Examples
    --------
    >>> args = Arguments({"layer": 3})
    >>> args, args["layer"], args == {"layer": 3}, {args: 1}[args]
    ({'layer': 3}, 3, True, 1)
    >>> args | {"layer": 4}
    {'layer': 4}
    """

    __slots__ = ("_text",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._text = json.dumps(self, sort_keys=True)

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none, as it can be changed
        return hash(self._text)

    def __lt__(self, other: object) -> bool:
        return self._text < other._text if isinstance(other, Arguments) else NotImplemented

    def __reduce__(self) -> tuple[type[Arguments], tuple[dict[str, Any]]]:
        return Arguments, (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the arguments of an op cannot be changed; change a copy: dict(args)")

    __setitem__ = __delitem__ = update = __ior__ = _refuse
    clear = pop = popitem = setdefault = _refuse


def parsed(names: CategoryColumn) -> list[Arguments | None]:
    """Return the arguments of each row; None if the row has none.

    Rows with the same text share an object, unless a list or dict in it could be changed.
    """
    shared: list[Arguments | None] = [Arguments(json.loads(text)) for text in names.categories]
    is_nested = {
        code
        for code, args in enumerate(shared)
        if args and any(isinstance(value, list | dict) for value in args.values())
    }
    rows = [*shared, None]
    return [
        Arguments(json.loads(names.categories[code])) if code in is_nested else rows[code]
        for code in names.codes.tolist()
    ]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of many ops: ``codes`` (int32, `MISSING` for none) into ``distinct`` values.

    A value is a bool, a number or a string; lists and dicts are represented by their JSON text.
    """

    name: str
    codes: npt.NDArray[np.int32]
    distinct: Sequence[Any]


def arguments(names: CategoryColumn, rows: npt.NDArray[Any], keys: Iterable[str]) -> list[Argument]:
    """Return single arguments of some ops, parsing each distinct text once.

    Parameters
    ----------
    names
        A column of kind ``args``.
    rows
        int array of rows; -1 for a row without arguments.
    keys
        Names of the arguments.
    """
    of_text = [json.loads(text) for text in names.categories]
    codes = np.append(names.codes, np.int32(MISSING))[rows]
    result = []
    for key in keys:
        index: dict[tuple[type, object], int] = {}
        of_code = np.full(len(of_text) + 1, MISSING, np.int32)
        for code, args in enumerate(of_text):
            value = args.get(key)
            if value is not None:
                text = json.dumps(value) if isinstance(value, list | dict) else value
                of_code[code] = index.setdefault((type(text), text), len(index))
        values: list[Any] = [value for _, value in index]
        result.append(Argument(key, of_code[codes], values))
    return result


def argument_names(names: CategoryColumn, rows: npt.NDArray[Any]) -> list[str]:
    """Return the names of the arguments that occur in `rows`, in order of first appearance."""
    codes = np.append(names.codes, np.int32(MISSING))[rows]
    present = np.zeros(len(names.categories) + 1, np.bool_)
    present[codes] = True
    found: dict[str, None] = {}
    for code in np.flatnonzero(present[:-1]).tolist():
        found.update(dict.fromkeys(json.loads(names.categories[code])))
    return list(found)
