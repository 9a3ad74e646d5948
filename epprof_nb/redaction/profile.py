"""A copy of a profile without what its owner does not want to share.

What is left out of one place is left out of all: every name, every argument and every text of
``info`` goes through the same filter, so that views, pages and files made from the copy cannot
tell it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import MISSING
from epprof_nb.redaction.text import PATH, SHAPE, Filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from epprof_nb.data.table import Table

Part = Literal["source", "paths", "hosts", "shapes"]
PARTS: tuple[Part, ...] = get_args(Part)

_HOST_KEYS = {
    "host", "hostname", "user", "username", "login", "node", "nodename", "machine", "ip",
    "address", "uuid", "serial", "pcibusid", "pid",
}  # fmt: skip
"""Keys of ``info`` that tell which machine it was, or whose."""
_PATH_KEYS = {"path", "file", "filename", "folder", "directory", "cwd", "library"}
_SHAPE_KEYS = {"shape", "shapes", "size", "dims"}
_LAUNCH_SHAPES = tuple(f"{of}_{axis}" for of in ("grid", "block") for axis in "xyz")


def parts_of(redact: bool | str | Iterable[str]) -> tuple[Part, ...]:  # noqa: FBT001
    """Return the parts that a ``redact`` argument names, in a fixed order.

    Raises
    ------
    ValueError
        For a part that does not exist; it says which do.
    """
    if isinstance(redact, bool):
        return PARTS if redact else ()
    wanted = {redact} if isinstance(redact, str) else set(redact)
    unknown = sorted(wanted - set(PARTS))
    if unknown:
        raise ValueError(
            f"cannot redact {', '.join(map(repr, unknown))}: choose from {', '.join(PARTS)}, "
            "or True for all of them"
        )
    return tuple(part for part in PARTS if part in wanted)


def redacted(profile: ProfileData, redact: bool | str | Iterable[str] = True) -> ProfileData:  # noqa: FBT001, FBT002
    """Return a copy of the profile without the parts named; the profile stays as it is.

    Parameters
    ----------
    profile
        The profile.
    redact
        True for all, or one or several of:

        ``"source"``
            The text of cells and statements, and the arguments of ops. Statements become
            ``line 7``; the names given to ops stay.
        ``"paths"``
            File and folder names, in code, names and notes.
        ``"hosts"``
            Names and addresses of machines, users, and the identifiers of GPUs.
        ``"shapes"``
            Shapes of tensors, grids and blocks of kernels. Sizes in bytes stay.

    Returns
    -------
    copy
        The redacted profile; its ``info["redacted"]`` names the parts left out.

    Raises
    ------
    ValueError
        For a part that does not exist.
    """
    parts = parts_of(redact)
    if not parts:
        return profile
    filters = Filter(
        paths="paths" in parts,
        hosts="hosts" in parts,
        shapes="shapes" in parts,
        dropped=_code(profile) if "source" in parts else (),
    )
    tables = {name: _table(table, parts, filters) for name, table in profile.tables.items()}
    info = _info(profile.info, parts, filters)
    info["redacted"] = [*parts, *(p for p in info.get("redacted", ()) if p not in parts)]
    info["notes"] = [*(info.get("notes") or ()), f"Left out of this copy: {', '.join(parts)}."]
    sources = {
        filters(cell): _blank(text) if "source" in parts else filters(text)
        for cell, text in profile.sources.items()
        if "paths" not in parts or PATH not in filters(cell)  # without its name a file is no file
    }
    if "paths" in parts and "op_places" in info:
        info["op_places"] = {}
    return ProfileData(tables, info, sources)


def _blank(text: str) -> str:
    """As many lines as the text has, all empty: lines keep their numbers."""
    return "\n" * len(text.splitlines())


def _statements(ops: Table) -> npt.NDArray[np.bool_]:
    """Ops whose name is the text of a statement."""
    of_cell = ops.names("category").equals("cell") & ~ops.names("op_type").equals("cell")
    lines: npt.NDArray[np.bool_] = ops["line"] != MISSING
    return lines | of_cell | ops.names("op_type").equals("line")


def _code(profile: ProfileData) -> set[str]:
    """Every piece of source text that something else could quote."""
    ops = profile.tables["ops"]
    names = ops.names("name").take(_statements(ops)).compact().categories
    lines = (line.strip() for text in profile.sources.values() for line in text.splitlines())
    return {*names, *lines}


def _table(table: Table, parts: tuple[Part, ...], filters: Filter) -> Table:
    changed: dict[str, Any] = {}
    for column in table.schema.columns:
        if column.kind not in ("name", "args"):
            continue
        names = table.names(column.name).compact()
        if column.name.endswith("_shapes") and "shapes" in parts:
            changed[column.name] = _missing(len(table))
        elif column.kind == "args":
            drop = "source" in parts
            changed[column.name] = (
                _missing(len(table)) if drop else _each(names, lambda text: _args(text, filters))
            )
        else:
            of_kernel = table.schema.name == "activities"
            changed[column.name] = _each(names, filters.kernel if of_kernel else filters)
    if "shapes" in parts:
        for name in set(_LAUNCH_SHAPES) & set(table.schema.names):
            changed[name] = np.full(len(table), MISSING, np.int64)
    if table.schema.name == "ops":
        changed["name"] = _op_names(table, filters, numbered="source" in parts)
    return table.replace(**changed)


def _op_names(ops: Table, filters: Filter, *, numbered: bool) -> CategoryColumn:
    """Names of the ops; those of statements by the number of their line, where `numbered`."""
    names = ops.names("name")
    nodes = ops.names("category").equals("node")
    statements = _statements(ops) & ~nodes & numbered
    codes = np.full(len(ops), MISSING, np.int32)
    index: dict[str, int] = {}
    for rows, change in ((nodes, filters.node), (~nodes & ~statements, filters)):
        part = _each(names.take(rows).compact(), change)
        place = [index.setdefault(text, len(index)) for text in part.categories]
        codes[rows] = np.array([*place, MISSING], np.int32)[part.codes]
    lines, of_row = np.unique(ops["line"][statements], return_inverse=True)
    place = [
        index.setdefault("statement" if line == MISSING else f"line {line}", len(index))
        for line in lines.tolist()
    ]
    codes[statements] = np.array([*place, MISSING], np.int32)[of_row]
    return CategoryColumn(codes, tuple(index))


def _missing(length: int) -> CategoryColumn:
    return CategoryColumn(np.full(length, MISSING, np.int32), ())


def _each(names: CategoryColumn, change: Callable[[str], str]) -> CategoryColumn:
    """The names, each changed; two that become the same share a category."""
    index: dict[str, int] = {}
    place = [index.setdefault(change(text), len(index)) for text in names.categories]
    return CategoryColumn(np.array([*place, MISSING], np.int32)[names.codes], tuple(index))


def _args(text: str, filters: Filter) -> str:
    return json.dumps(_value(json.loads(text), filters))


def _value(value: Any, filters: Filter) -> Any:  # noqa: ANN401
    """A JSON value with every text in it, keys too, filtered."""
    if isinstance(value, str):
        return filters(value)
    if isinstance(value, dict):
        return {
            filters(str(key)): SHAPE
            if filters.shapes and str(key).lower() in _SHAPE_KEYS
            else _value(item, filters)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        integers = all(isinstance(item, int) and not isinstance(item, bool) for item in value)
        if filters.shapes and value and integers:
            return SHAPE
        return [_value(item, filters) for item in value]
    return value


def _info(info: dict[str, Any], parts: tuple[Part, ...], filters: Filter) -> dict[str, Any]:
    kept = {}
    for key, value in info.items():
        words = str(key).lower().split("_")
        last = words[-1]
        if "hosts" in parts and {"".join(words), last} & _HOST_KEYS:
            continue
        if "paths" in parts and last in _PATH_KEYS and isinstance(value, str):
            kept[filters(str(key))] = PATH
        else:
            kept[filters(str(key))] = _info_value(value, parts, filters)
    return kept


def _info_value(value: Any, parts: tuple[Part, ...], filters: Filter) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return _info(value, parts, filters)
    if isinstance(value, list | tuple):
        return [_info_value(item, parts, filters) for item in value]
    # What is no JSON is written as its text where the info is saved: that text can tell, too.
    plain = value is None or isinstance(value, bool | int | float | np.generic)
    return value if plain else filters(str(value))
