"""Arguments of NVTX ranges and marks: domain, category, color and payload."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import OpKind
from epprof_nb.recording.native_columns import ids, name_of

if TYPE_CHECKING:
    import numpy.typing as npt

# As in native/nvtx/range_details.h and abi.h.
_HAS_COLOR, _IS_MARK = 1, 2
_PAYLOADS = {1: "<Q", 2: "<q", 3: "<d", 4: "<I", 5: "<i", 6: "<f"}
_EXTENDED = 0xDFBD0009 - 2**32
"""The payload is a name, the text of a JSON object."""


def nvtx_kinds(details: npt.NDArray[np.int64]) -> dict[int, OpKind]:
    """Return the kinds of ranges and marks by the ids of their details."""
    used = np.unique(details).tolist()
    first = used[0]
    raw = _native.nvtx_details(first)
    rows = np.array(used, np.int64) - first
    columns = {
        name: ids(raw, name, dtype)[rows].tolist()
        for name, dtype in (
            ("domain", np.uint32), ("category", np.uint32), ("category_name", np.uint32),
            ("flags", np.uint32), ("color", np.uint32), ("payload_type", np.int32),
        )
    }  # fmt: skip
    columns["payload"] = np.frombuffer(raw["payload"], np.uint64)[rows].tolist()
    return {
        number: _kind(dict(zip(columns, values, strict=True)))
        for number, values in zip(used, zip(*columns.values(), strict=True), strict=True)
    }


def _kind(row: dict[str, int]) -> OpKind:
    args: dict[str, object] = {}
    if row["domain"]:
        args["domain"] = name_of(row["domain"])
    if row["category"]:
        name = row["category_name"]
        args["category"] = name_of(name) if name else row["category"]
    if row["flags"] & _HAS_COLOR:
        args["color"] = f"#{row['color'] & 0xFFFFFF:06x}"
    form = _PAYLOADS.get(row["payload_type"])
    if form is not None:
        size = struct.calcsize(form)
        args["payload"] = struct.unpack(form, struct.pack("<Q", row["payload"])[:size])[0]
    elif row["payload_type"] == _EXTENDED:
        for entry, value in json.loads(name_of(row["payload"]), object_pairs_hook=list):
            free = entry
            while free in args:  # used by the domain or another payload of the range
                free = f"payload.{free}"
            args[free] = value
    kind = OpKind("mark" if row["flags"] & _IS_MARK else "range", "nvtx")
    if args:
        kind.set_args(args)
    return kind
