"""Element types of tensors: NumPy's names, ONNX's names and ONNX's numbers."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.core.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Iterable

NUMBERS = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
"""ONNX's number (``TensorProto.DataType``) of each dtype that NumPy and ONNX Runtime share."""

SMALL_FLOATS = {
    "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18, "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
}  # fmt: skip
"""The floating-point dtypes that ml_dtypes adds to NumPy. Empty if it is not installed."""
if find_spec("ml_dtypes") is None:
    SMALL_FLOATS = {}

ALL = {**NUMBERS, **SMALL_FLOATS}

_ONNX_NAMES = {
    "float": "float32",
    "double": "float64",
    **{name.replace("_", ""): name for name in SMALL_FLOATS},
}


def dtype_of(onnx_type: str) -> str | None:
    """Return the dtype of ``tensor(float)``; None if there is none, or if it is not a tensor."""
    found = re.fullmatch(r"tensor\((\w+)\)", onnx_type)
    name = _ONNX_NAMES.get(found[1], found[1]) if found else ""
    return name if name in ALL else None


def _name(dtype: Any) -> str:  # noqa: ANN401
    """Return the name of a dtype of NumPy, or the text itself."""
    if isinstance(dtype, str):
        return dtype
    try:
        return str(np.dtype(dtype).name)
    except TypeError:
        return str(dtype)


def parse(types: str | type | np.dtype[Any] | Iterable[Any]) -> tuple[str, ...]:
    """Return the dtypes named in ``"float32 float64"`` or a sequence of names or dtypes.

    Raises
    ------
    KernelError
        If kernels do not support a dtype of this name.
    """
    if isinstance(types, str):
        words = types.split()
    elif isinstance(types, (type, np.dtype)):
        words = [_name(types)]
    else:
        words = [_name(t) for t in types]
    names = tuple(dict.fromkeys(_ONNX_NAMES.get(word, word) for word in words))
    unknown = [name for name in names if name not in ALL]
    if unknown or not names:
        raise KernelError(
            f"types={types!r}: {', '.join(unknown) or 'no type'} is not a type that kernels "
            f"support. Choose among {', '.join(ALL)}."
        )
    return names


@cache
def small_float_dtypes() -> dict[int, np.dtype[Any]]:
    """Return the dtypes that ml_dtypes adds to NumPy, by ONNX's number."""
    if not SMALL_FLOATS:
        return {}
    import ml_dtypes

    return {number: np.dtype(getattr(ml_dtypes, name)) for name, number in SMALL_FLOATS.items()}
