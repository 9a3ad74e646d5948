"""A stand-in for the module ``cupy.cuda``: memory, streams and devices of the fake driver."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import threading
from types import SimpleNamespace

_state = threading.local()
entered = collections.Counter()  # how often a stream or an allocator was made current
_RELAXED = 2


@contextlib.contextmanager
def relaxed_captures(library):
    """Allow calls on this thread that would end its capture, as CuPy does for harmless ones."""
    mode = ctypes.c_int(_RELAXED)
    library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
    yield
    library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


class _Owned:
    """Device memory of the array that holds it."""

    def __init__(self, module, nbytes):
        self.module, self.ptr = module, 0
        pointer = ctypes.c_uint64()
        if module.library.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(nbytes)):
            raise MemoryError("the device has no memory")
        self.ptr = pointer.value

    def __del__(self):
        if self.ptr:
            # CuPy's pool keeps freed memory; this is equally harmless in a capture.
            with relaxed_captures(self.module.library):
                self.module.library.cuMemFree_v2(self.ptr)


class _Stack:
    """A context manager that makes a stream or a device current on the thread."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    def __enter__(self):
        name = self.name()
        if not hasattr(_state, name):
            setattr(_state, name, [None])
            _state.__dict__.setdefault("names", [])
        getattr(_state, name).append(self)
        _state.names.append(name)
        entered[name] += 1
        return self

    def __exit__(self, *_):
        getattr(_state, _state.names.pop()).pop()

    @property
    def ptr(self):
        return self.value


_NULL_STREAM = SimpleNamespace(value=None, ptr=0)


class _Pointer:
    def __init__(self, memory, offset):
        self.ptr = memory.ptr + offset
        self.mem = memory


class _Unowned:
    def __init__(self, pointer, size, owner, device_id):
        self.ptr, self.size, self.owner, self.device_id = pointer, size, owner, device_id


class _Runtime:
    @staticmethod
    def runtimeGetVersion():  # noqa: N802 - CuPy's name
        return 13000

    @staticmethod
    def getDevice():  # noqa: N802 - CuPy's name
        return 0

    @staticmethod
    def driverGetVersion():  # noqa: N802 - CuPy's name
        return 13000


class _Device:
    compute_capability = "90"

    def __init__(self, module, index):
        self.module, self.index = module, index

    def __enter__(self):
        context = ctypes.c_void_p()
        self.module.library.cuDevicePrimaryCtxRetain(ctypes.byref(context), self.index)
        self.module.library.cuCtxPushCurrent_v2(context)
        return self

    def __exit__(self, *_):
        self.module.library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


class Cuda:
    runtime = _Runtime
    UnownedMemory = _Unowned
    MemoryPointer = _Pointer

    def __init__(self, module):
        self.module = module
        self.Device = lambda index: _Device(module, index)
        self.device = SimpleNamespace(get_cublas_handle=lambda: 1)
        self.alloc = self.allocate
        self.Stream = SimpleNamespace(from_external=self.external_stream)

    def allocate(self, nbytes):
        current = getattr(_state, "allocators", [None])[-1]
        return _Owned(self.module, max(nbytes, 1)) if current is None else current.value(nbytes)

    def get_current_stream(self, device_id=-1):
        device = self.module.device() if device_id < 0 else device_id
        return getattr(_state, f"streams of {device}", [None])[-1] or _NULL_STREAM

    @staticmethod
    def using_allocator(allocator):
        return _Stack(lambda: "allocators", allocator)

    def external_stream(self, stream):
        version, pointer = stream.__cuda_stream__()
        assert version == 0
        return _Stack(lambda: f"streams of {self.module.device()}", pointer)
