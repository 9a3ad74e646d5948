"""The address of the OrtSession of a Python session, which ONNX Runtime's package does not give.

The Python object has a C++ object, which has a pointer to the session. Its place differs between
releases, so it is found by its type: C++ objects name theirs. Memory is read through the kernel,
which refuses addresses that are not mapped, and nothing is used unless all names are right.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import Self

_WRAPPER = b"N11onnxruntime6python18PyInferenceSessionE"
_SESSION = b"N11onnxruntime16InferenceSessionE"
_WORD = 8
_VALUE_OFFSET = 16
"""Of the C++ object's address in a Python object of pybind11, after the object's header."""
_MOST_BYTES = 1 << 16
"""Largest C++ object that is searched."""


def session_pointer(native: object) -> int | None:
    """Return the address of an OrtSession; None if it is not found.

    Parameters
    ----------
    native
        The attribute ``_sess`` of an ``InferenceSession``. It must be kept as long as the address
        is used: ONNX Runtime's package may replace the attribute.
    """
    try:
        with _Memory() as memory:
            return memory.session_in(memory.word(id(native) + _VALUE_OFFSET))
    except (OSError, AttributeError):  # a system without this file, or another C library
        return None


class _Memory:
    """The memory of this process, read without the risk of a fault."""

    def __enter__(self) -> Self:
        self._file = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def session_in(self, wrapper: int) -> int | None:
        """Return the only session that a wrapper of this address points to."""
        if self.type_name(wrapper) != _WRAPPER:
            return None
        size = ctypes.CDLL(None).malloc_usable_size
        size.restype, size.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
        words = range(0, min(size(wrapper), _MOST_BYTES) - _WORD + 1, _WORD)
        pointers = {self.word(wrapper + offset) for offset in words}
        found = [pointer for pointer in pointers if self.type_name(pointer) == _SESSION]
        return found[0] if len(found) == 1 else None

    def word(self, address: int) -> int:
        """Return the word at an address; 0 if there is none."""
        return int.from_bytes(self._bytes(address, _WORD), "little")

    def type_name(self, address: int) -> bytes:
        """Return the name of the type of a C++ object with virtual functions; else anything."""
        # The table of an object's functions follows a pointer to its type, which has the name.
        table = self.word(address)
        kind = self.word(table - _WORD) if table else 0
        return self._bytes(self.word(kind + _WORD), 64).split(b"\0")[0] if kind else b""

    def _bytes(self, address: int, count: int) -> bytes:
        with suppress(OSError, OverflowError):  # not mapped
            return os.pread(self._file, count, address)
        return b""
