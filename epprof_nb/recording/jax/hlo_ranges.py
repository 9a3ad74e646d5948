"""Programs, `named_scope`s and instructions (HLO) of JAX as ops, from the ranges of NVTX of XLA.

A program is a range ``XlaModule:#hlo_module=jit_step,program_id=7#``, and each of its instructions
is a range ``Thunk:#name=jit(step)/layer/add,hlo_op=loop_add_fusion.1,unique_hlo_op_id=3#``, whose
name JAX builds from the function, the ``named_scope`` and the operation.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.recording.jax.hlo_lines import HloLines
from epprof_nb.recording.ranges.bounded_arguments import as_json
from epprof_nb.recording.ranges.range_sources import shown_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.data.table import Table
    from epprof_nb.recording.frameworks.framework_ops import OpKind

_DOMAIN = "TSL"
_PROGRAM = re.compile(r"XlaModule:#(?:.*,)?hlo_module=([^,#]+)(?:,program_id=(\d+))?.*#$")
_INSTRUCTION = re.compile(r"Thunk:#(?:name=(.*),)?hlo_op=([^,#]+)(?:,.*)?#$")
_FUNCTION = re.compile(r"^jit\([^()]*\)/")

_places = HloLines()


def is_of_xla(kind: OpKind) -> bool:
    """Whether the ranges of a kind are in the domain of XLA's runtime."""
    return kind.args is not None and json.loads(kind.args).get("domain") == _DOMAIN


def with_hlo_ranges(ops: Table, rows: npt.NDArray[Any], is_xla: npt.NDArray[np.bool_]) -> Table:
    """Describe the ranges of XLA as programs and instructions.

    Parameters
    ----------
    ops
        The ops of a recording.
    rows
        Rows of the ranges of NVTX.
    is_xla
        Mask of those rows that are in XLA's domain.
    """
    names = ops.names("name")
    described = [_described(name) for name in names.categories]
    known = np.array([bool(found.op_type) for found in described] + [False])
    rows = rows[is_xla & known[names.codes[rows]]]
    if not len(rows):
        return ops
    codes = names.codes[rows]
    programs = _programs_of(ops, rows, codes, described)
    places = {
        program: _places.of_instructions(
            described[program].name, _instructions(codes[programs == program], described)
        )
        for program in np.unique(programs[programs != MISSING]).tolist()
    }
    groups, first = group_codes(codes.astype(np.int64), programs)
    texts: list[tuple[str, str, str | None]] = []
    for code, program in zip(codes[first].tolist(), programs[first].tolist(), strict=True):
        name, op_type, args = described[code]
        place = places.get(program, {}).get(str(args.get("hlo_op")))
        if place is not None:
            args = {**args, "file": shown_file(place[0]), "line": place[1]}
        texts.append((name, op_type, as_json(args) if args else None))
    name_texts, op_types, arg_texts = zip(*texts, strict=True)

    def replaced(column: str, of_group: Sequence[str | None]) -> CategoryColumn:
        return ops.names(column).replaced(rows, CategoryColumn.of(of_group).take(groups))

    return ops.replace(
        name=replaced("name", name_texts),
        op_type=replaced("op_type", op_types),
        args=replaced("args", arg_texts),
        source=replaced("source", ["xla"] * len(first)),
        category=replaced("category", ["framework"] * len(first)),
    )


class _Range(NamedTuple):
    name: str
    op_type: str
    args: dict[str, object]


_UNKNOWN = _Range("", "", {})


def _described(message: str) -> _Range:
    """Return name, op type and arguments of a range; `_UNKNOWN` if it is of another kind.

    Examples
    --------
    >>> tuple(_described("Thunk:#name=jit(f)/layer/add,hlo_op=fusion.1,unique_hlo_op_id=3#"))
    ('layer/add', 'hlo', {'hlo_op': 'fusion.1', 'op_name': 'jit(f)/layer/add'})
    """
    if match := _PROGRAM.match(message):
        args: dict[str, object] = {"program_id": int(match[2])} if match[2] else {}
        return _Range(match[1], "hlo_module", args)
    if match := _INSTRUCTION.match(message):
        op_name, hlo_op = match[1], match[2]
        if op_name is None:
            return _Range(hlo_op, "hlo", {"hlo_op": hlo_op})
        # The enclosing module has the function's name.
        name = _FUNCTION.sub("", op_name) if "/" in op_name else hlo_op
        return _Range(name, "hlo", {"hlo_op": hlo_op, "op_name": op_name})
    return _UNKNOWN


def _programs_of(
    ops: Table, rows: npt.NDArray[Any], codes: npt.NDArray[np.int32], described: list[_Range]
) -> npt.NDArray[np.int64]:
    """Return the code of the range of the program around each instruction; `MISSING` for others.

    Programs with the same name have ranges with different names, which contain the program's id.
    """
    op_ids, parents = ops["op_id"][rows].tolist(), ops["parent_op_id"][rows].tolist()
    around: dict[int, int] = {}
    programs = []
    # Ops are in order of their start. An instruction in a loop is inside the loop's instruction.
    for op_id, parent, code in zip(op_ids, parents, codes.tolist(), strict=True):
        program = around.get(parent, MISSING)
        programs.append(program)
        around[op_id] = code if described[code].op_type == "hlo_module" else program
    return np.array(programs, np.int64)


def _instructions(codes: npt.NDArray[np.int32], described: list[_Range]) -> dict[str, str | None]:
    """Return the ``op_name`` of some instructions, by name."""
    found: dict[str, str | None] = {}
    for code in np.unique(codes).tolist():
        args = described[code].args
        op_name = args.get("op_name")
        found[str(args["hlo_op"])] = op_name if isinstance(op_name, str) else None
    return found
