"""Element types of tensors: NumPy's names, ONNX's names and ONNX's numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from epprof_nb.core.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Iterable

NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
"""ONNX's number (``TensorProto.DataType``) of each dtype that NumPy and ONNX Runtime share."""

_ONNX_NAMES = {"float": "float32", "double": "float64"}


def dtype_of(onnx_type: str) -> str | None:
    """Return the dtype of ``tensor(float)``; None if NumPy has none, or it is no tensor."""
    found = re.fullmatch(r"tensor\((\w+)\)", onnx_type)
    name = _ONNX_NAMES.get(found[1], found[1]) if found else ""
    return name if name in NUMBERS else None


def parse(types: str | Iterable[str]) -> tuple[str, ...]:
    """Return the dtypes named in ``"float32 float64"`` or a sequence.

    Raises
    ------
    KernelError
        If a name is no dtype that kernels support.
    """
    words = types.split() if isinstance(types, str) else [str(t) for t in types]
    names = tuple(dict.fromkeys(_ONNX_NAMES.get(word, word) for word in words))
    unknown = [name for name in names if name not in NUMBERS]
    if unknown or not names:
        raise KernelError(
            f"types={types!r}: {', '.join(unknown) or 'no type'} is not a type that kernels "
            f"support. Choose among {', '.join(NUMBERS)}."
        )
    return names
