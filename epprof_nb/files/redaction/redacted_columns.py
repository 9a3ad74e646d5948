"""Redacted copies of profiles, for sharing.

Every name, argument and text of ``info`` passes through the same filter, so redacted information
appears nowhere in views, pages and files made from the copy.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from epprof_nb.analysis.onnx.recorded_runs import LEARNED, MISMATCHED, NOT_RECORDED, RECORDED
from epprof_nb.analysis.ranks.collective_kinds import KINDS, kind_of_call
from epprof_nb.analysis.ranks.collectives_of_rank import ARGUMENTS, NCCL_COMMUNICATOR
from epprof_nb.core.ort_binding import ONNX_RUNTIME
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.ort_arguments import NODE_MEMORY, NODE_SIZES
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import MISSING
from epprof_nb.data.table import FILL
from epprof_nb.data.token_arguments import CALL_ARGUMENTS
from epprof_nb.files.redaction.path_patterns import PATH, is_file_name
from epprof_nb.files.redaction.text_filter import SHAPE, Filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from epprof_nb.data.table import Table

Part = Literal["source", "paths", "hosts", "shapes"]
PARTS: tuple[Part, ...] = get_args(Part)

_HOST_KEYS = {
    "host", "hostname", "user", "username", "login", "node", "nodename", "machine", "ip",
    "address", "uuid", "serial", "pcibusid", "pid",
}  # fmt: skip
"""Keys of ``info`` that identify the machine or its user."""
_PATH_KEYS = {"path", "file", "script", "filename", "folder", "directory", "cwd", "library"}
_SHAPE_KEYS = {"shape", "shapes", "size", "dims"}
_NUMBERS_OF_SHAPES = (
    *(f"{of}_{axis}" for of in ("grid", "block") for axis in "xyz"), *NODE_SIZES, *NODE_MEMORY,
)  # fmt: skip

_CALL_NUMBERS = (*CALL_ARGUMENTS, "call_ns", "unprofiled_ns")
_CALL_WORDS = {
    "nodes": (RECORDED, LEARNED, MISMATCHED, NOT_RECORDED, None), "phase": ("prefill", "decode"),
}  # fmt: skip
"""Arguments with one of a few words."""
_COMMUNICATORS = (NCCL_COMMUNICATOR, "communicator")


def parts_of(redact: bool | str | Iterable[str]) -> tuple[Part, ...]:  # noqa: FBT001
    """Return the parts that a ``redact`` argument selects, in a fixed order.

    Raises
    ------
    ValueError
        If a part does not exist.
    """
    if isinstance(redact, bool):
        return PARTS if redact else ()
    requested = {redact} if isinstance(redact, str) else set(redact)
    unknown = sorted(requested - set(PARTS))
    if unknown:
        raise ValueError(
            f"cannot redact {', '.join(map(repr, unknown))}: choose from {', '.join(PARTS)}, "
            "or True for all of them"
        )
    return tuple(part for part in PARTS if part in requested)


class Numbers:
    """Numbers that replace files and functions: one object for all profiles of a job."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.functions: dict[str, int] = {}


def redacted(
    profile: ProfileData,
    redact: bool | str | Iterable[str] = True,  # noqa: FBT001, FBT002
    numbers: Numbers | None = None,
) -> ProfileData:
    """Return a copy of the profile without the given parts.

    Parameters
    ----------
    profile
        The profile, which is not changed.
    redact
        True for all parts, or one or more of:

        ``"source"``
            The text of cells and statements, the arguments of ops, and the names of functions that
            are not of libraries. Statements become ``line 7``; the names given to ops stay.
        ``"paths"``
            File and folder names, in code, names and notes.
        ``"hosts"``
            Names and addresses of machines, users, and the identifiers of GPUs.
        ``"shapes"``
            Shapes of tensors, grids and blocks of kernels. Sizes in bytes stay.
    numbers
        Numbers of files and functions, to which this profile adds its own; new ones if None.

    Returns
    -------
    copy
        The redacted profile; its ``info["redacted"]`` lists the removed parts.

    Raises
    ------
    ValueError
        If a part does not exist.
    """
    parts = parts_of(redact)
    if not parts:
        return profile
    filters = Filter(
        paths="paths" in parts,
        hosts="hosts" in parts,
        shapes="shapes" in parts,
        source="source" in parts,
        source_pieces=_source_text(profile) if "source" in parts else (),
        files=_file_names(profile),
    )
    numbers = numbers or Numbers()
    tables = {
        name: _table(table, parts, filters, numbers) for name, table in profile.tables.items()
    }
    info = _info(profile.info, parts, filters)
    info["redacted"] = [*parts, *(p for p in info.get("redacted", ()) if p not in parts)]
    info["notes"] = [*(info.get("notes") or ()), f"Removed from this copy: {', '.join(parts)}."]
    sources = {
        filters(cell): _blank(text) if "source" in parts else filters(text)
        for cell, text in profile.sources.items()
        if "paths" not in parts or PATH not in filters(cell)  # drop files whose name is redacted
    }
    for places in ("op_places", "class_places", "kernel_places"):
        if "paths" in parts and places in info:
            # Places in cells stay, because names of cells are not paths.
            original = profile.info[places]
            info[places] = {
                name: original[name]
                for name in info[places]
                if name in original and _is_in_source(original[name], sources)
            }
    return ProfileData(tables, info, sources)


def _is_in_source(place: object, sources: Mapping[str, str]) -> bool:
    """Whether a place in code is in a source that was kept under its name."""
    return isinstance(place, dict) and place.get("file") in sources


def _blank(text: str) -> str:
    """Return as many empty lines as the text has, so that line numbers stay valid."""
    return "\n" * len(text.splitlines())


def _statements(ops: Table) -> npt.NDArray[np.bool_]:
    """Mask of the ops whose name is the text of a statement."""
    of_cell = ops.names("category").equals("cell") & ~ops.names("op_type").equals("cell")
    lines: npt.NDArray[np.bool_] = ops["line"] != MISSING
    return lines | of_cell | ops.names("op_type").equals("line")


def _source_text(profile: ProfileData) -> set[str]:
    """Every piece of source text that other texts could quote."""
    ops = profile.tables["ops"]
    names = ops.names("name").take(_statements(ops)).compact().categories
    lines = (line.strip() for text in profile.sources.values() for line in text.splitlines())
    return {*names, *lines}


def _file_names(profile: ProfileData) -> set[str]:
    """Names of scripts and models, which may lack an extension or contain spaces."""
    names = {profile.info.get("script"), *profile.sources}
    sessions = profile.info.get("onnxruntime_sessions")
    if isinstance(sessions, dict):
        names.update(sessions.values())
    for pool in (profile.info.get("memory") or {}).get("pools") or ():
        names.add(str(pool["pool"]).removeprefix(f"{ONNX_RUNTIME} "))  # an arena has its session's
    return {
        name for name in names
        if isinstance(name, str) and (is_file_name(name) or name == profile.info.get("script"))
    }  # fmt: skip


def _table(table: Table, parts: tuple[Part, ...], filters: Filter, numbers: Numbers) -> Table:
    changed: dict[str, Any] = {}
    for column in table.schema.columns:
        if column.kind not in ("name", "args"):
            continue
        names = table.names(column.name).compact()
        if column.name.endswith("_shapes") and "shapes" in parts:
            changed[column.name] = _missing(len(table))
        elif column.kind == "args":
            changed[column.name] = (
                _numbers_of_calls(names)
                if "source" in parts
                else names.map(lambda text: _args(text, filters))
            )
        else:
            of_kernel = table.schema.name == "activities"
            changed[column.name] = names.map(filters.kernel if of_kernel else filters)
    # Blocks keep their sizes, one of which has the name of a size of nodes.
    if "shapes" in parts and table.schema.name != "memory_blocks":
        for name in set(_NUMBERS_OF_SHAPES) & set(table.schema.names):
            if not table.is_absent(name):
                changed[name] = np.full(len(table), FILL[table.schema.column(name).kind], np.int64)
    if table.schema.name == "stacks":
        changed |= _of_stacks(table, parts, numbers)
    if table.schema.name == "ops":
        changed["name"] = _op_names(table, filters, numbered="source" in parts)
    return table.replace(**changed)


def _of_stacks(
    stacks: Table, parts: tuple[Part, ...], numbers: Numbers
) -> dict[str, CategoryColumn]:
    """Redacted files and functions of stacks: every file, and the functions of the user.

    Files and functions get numbers, so that different ones stay different, and the same ones of
    several processes the same.
    """
    changed = {}
    if "paths" in parts:
        files = stacks.names("file").compact()
        in_cell = stacks.names("owner").equals("cell")
        cells = set(files.take(in_cell).compact().categories)
        of_name = numbers.files
        changed["file"] = files.map(
            lambda name: (
                name if name in cells else f"{PATH} {of_name.setdefault(name, len(of_name) + 1)}"
            )
        )
    if "source" in parts:
        names = stacks.names("function")
        own = np.flatnonzero(~stacks.names("owner").equals("library"))
        functions = names.take(own).compact()
        of_function = numbers.functions
        numbered = functions.map(
            lambda name: f"function {of_function.setdefault(name, len(of_function))}"
        )
        changed["function"] = names.replaced(own, numbered).compact()
    return changed


def _op_names(ops: Table, filters: Filter, *, numbered: bool) -> CategoryColumn:
    """Redacted names of the ops. If `numbered`, statements are named by their line number."""
    names = ops.names("name")
    nodes = ops.names("category").equals("node")
    statements = _statements(ops) & ~nodes & numbered
    codes = np.full(len(ops), MISSING, np.int32)
    index: dict[str, int] = {}
    for rows, change in ((nodes, filters.node), (~nodes & ~statements, filters)):
        part = names.take(rows).compact().map(change)
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


def _numbers_of_calls(args: CategoryColumn) -> CategoryColumn:
    """Keep the numbers of runs, of calls of language models and of collectives, but no text."""
    kept = CategoryColumn.of([_numbers_of_call(text) for text in args.categories])
    return CategoryColumn(np.append(kept.codes, np.int32(MISSING))[args.codes], kept.categories)


def _numbers_of_call(text: str) -> str | None:
    given = json.loads(text)
    if not isinstance(given, dict):
        return None
    kept = {name: given[name] for name in _CALL_NUMBERS if isinstance(given.get(name), int)}
    words = _CALL_WORDS.items()
    kept |= {name: given[name] for name, of in words if name in given and given[name] in of}
    communicators = {name: given[name] for name in _COMMUNICATORS if name in given}
    if communicators:
        kept |= {name: given[name] for name in ARGUMENTS if isinstance(given.get(name), int)}
        kept |= {name: _communicator(value) for name, value in communicators.items()}
        kind = kind_of_call(str(given.get("collective")))
        kept |= {"collective": kind} if kind in KINDS else {}
    return json.dumps(kept) if kept else None


def _communicator(value: object) -> int | str:
    """Return a number, or a digest of a name, which is the same in each profile of a job."""
    text = str(value)
    if isinstance(value, int) or (text.isdecimal() and text.isascii()):
        return value if isinstance(value, int) else text
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _args(text: str, filters: Filter) -> str:
    return json.dumps(_value(json.loads(text), filters))


def _value(value: Any, filters: Filter) -> Any:  # noqa: ANN401
    """Filter every text in a JSON value, including keys."""
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
    # Values that JSON does not support are saved as text, which must be filtered as well.
    plain = value is None or isinstance(value, bool | int | float | np.generic)
    return value if plain else filters(str(value))
