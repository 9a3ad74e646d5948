"""A stand-in for CuPy over the fake driver: NumPy functions that run as work of a stream.

Arrays are in memory that the host cannot read. A function is launched on the current stream, may
read the memory of its arguments, and its result is copied to new device memory, or into ``out``.
The stand-in has only the functions that the kernels of the tests use.
"""

from __future__ import annotations

import collections
import ctypes
from types import SimpleNamespace

import numpy as np

from tests.ep.fake_cuda.cuda_module import Cuda, relaxed_captures
from tests.ep.like_cupy import compiled

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_launched = collections.deque(maxlen=500)  # callbacks that streams may still call
_captured = []  # callbacks that graphs may still call
_CAPTURE_UNSUPPORTED = 900


class Module:
    """Stand-in for the module ``cupy``."""

    __version__ = "0 (stand-in)"
    __name__ = __name__

    def __init__(self, driver):
        self.driver = driver
        self.library = driver.library
        self.library.fake_launch.argtypes = [
            ctypes.c_void_p, _CALLBACK, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
        ]  # fmt: skip
        self.library.fake_load.restype = ctypes.c_void_p
        self.library.fake_load.argtypes = [
            ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_size_t,
        ]  # fmt: skip
        self.library.fake_unload.argtypes = [ctypes.c_void_p]
        self.library.cuMemFree_v2.argtypes = [ctypes.c_uint64]
        self.library.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
        self.library.cuMemcpyAsync.argtypes = [
            ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p,
        ]  # fmt: skip
        self.cuda = Cuda(self)
        self.lib = SimpleNamespace(stride_tricks=_StrideTricks)
        self.launches = collections.deque(maxlen=500)  # device and address of the stream
        self.ElementwiseKernel = lambda *how, **named: _Kernel(
            self, compiled.ElementwiseKernel(*how, **named)
        )
        self.RawKernel = lambda code, name: _RawKernel(self, compiled.RawKernel(code, name))
        self.ndarray = lambda shape, dtype, memory: Array(self, shape, np.dtype(dtype), memory)
        for name in ("float32", "float64", "int64", "bool_", "inf", "newaxis"):
            setattr(self, name, getattr(np, name))

    def __getattr__(self, name):
        function = getattr(np, name)
        if not callable(function):
            return function
        return lambda *args, **kwargs: self.call(function, args, kwargs)

    def moveaxis(self, array, source, destination):
        return array._view(np.moveaxis(array.host, source, destination))

    def device(self):
        """The number of the current device."""
        device = ctypes.c_int(0)
        self.library.cuCtxGetDevice(ctypes.byref(device))
        return device.value

    def stream(self):
        """The address of the current stream."""
        return self.cuda.get_current_stream().value

    def call(self, function, args, kwargs):
        if self.is_capturing() and kwargs.get("out") is None:
            return self._in_new_memory(function, args, kwargs)
        out = kwargs.pop("out", None)
        result = []

        # A launch refers to addresses, not to arrays, as one of CuPy does.
        inputs, named, target = (_host(v) for v in (args, kwargs, out))
        has_out = out is not None

        def work(_):
            try:
                made = function(*inputs, **named)
                if has_out:
                    target[...] = made
                result.append(None if has_out else np.array(made))
            except Exception as error:
                result.append(error)

        used = [a.data.ptr for a in _arrays([args, list(kwargs.values()), out]) if a.host.size]
        self.launch(work, used)
        # Only a result without `out` needs its shape at once.
        if out is not None:
            return out
        self.synchronize()
        if isinstance(result[0], Exception):
            raise result[0]
        return self.asarray(result[0])

    def _in_new_memory(self, function, args, kwargs):
        """Launch a function without waiting, if the shape of its result does not depend on data."""
        made = []
        for fill in (0, 1):  # like the arguments, but without their data
            inputs, named = _host(
                (args, kwargs), lambda a, fill=fill: np.full(a.shape, fill, a.dtype)
            )
            with np.errstate(all="ignore"):
                made.append(np.asarray(function(*inputs, **named)))
        if made[0].shape != made[1].shape:
            raise RuntimeError("the shape depends on data, which is not known in a stream capture")
        out = Array(self, made[0].shape, made[0].dtype, self.cuda.allocate(made[0].nbytes))
        return self.call(function, args, {**kwargs, "out": out})

    def launch(self, work, used):
        callback = _CALLBACK(work)
        pointers = (ctypes.c_uint64 * len(used))(*used)
        stream = self.stream()
        self.launches.append((self.device(), stream))
        failed = self.library.fake_launch(stream, callback, None, pointers, len(used))
        if failed:
            raise RuntimeError(f"the launch failed with {failed}")
        (_captured if self.is_capturing() else _launched).append(callback)

    def is_capturing(self):
        stream, status = self.stream(), ctypes.c_int()
        if stream is None:
            return False
        self.library.cuStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    def synchronize(self):
        stream = self.stream()
        failed = self.library.cuStreamSynchronize(stream)
        if failed == _CAPTURE_UNSUPPORTED:
            raise RuntimeError(
                "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is "
                "capturing"
            )
        if failed:
            raise RuntimeError("the stream cannot be synchronized")

    def asarray(self, value, dtype=None):
        if isinstance(value, Array):
            return value
        value = np.ascontiguousarray(value, dtype)
        memory = self.cuda.allocate(value.nbytes)
        made = Array(self, np.shape(value), value.dtype, memory)
        if value.nbytes:
            with relaxed_captures(self.library):  # CuPy copies from pinned memory
                failed = self.library.cuMemcpyAsync(
                    memory.ptr, value.ctypes.data, value.nbytes, self.stream()
                )
            if failed:
                raise RuntimeError(f"the copy failed with {failed}")
        return made

    array = asarray

    def empty(self, shape, dtype=np.float64):
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return Array(self, shape, np.dtype(dtype), self.cuda.allocate(nbytes))


def _host(value, convert=lambda array: array.host):
    if isinstance(value, Array):
        return convert(value)
    if isinstance(value, dict):
        return {k: _host(v, convert) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_host(v, convert) for v in value)
    return value


def _arrays(value):
    if isinstance(value, Array):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)


def _has_indices(key):
    """Whether a key has indices in device memory, which CuPy reads there."""
    return any(True for _ in _arrays(key))


def _expect_fits(shape, whole):
    """Raise ValueError at once, like CuPy, if an array cannot be written to one of another shape.

    An error in work of a stream is too late for the caller.
    """
    while len(shape) > len(whole) and shape[0] == 1:
        shape = shape[1:]
    if np.broadcast_shapes(shape, whole) != whole:
        raise ValueError(f"an array of the shape {shape} does not fit one of the shape {whole}")


class Array:
    """An array in device memory. `host` is a NumPy array over the same addresses."""

    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self, module, shape, dtype, memory, host=None):
        self.module, self.data = module, memory
        if host is None:
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            raw = (ctypes.c_char * size).from_address(memory.ptr) if size else b""
            host = np.frombuffer(raw, dtype).reshape(shape) if size else np.empty(shape, dtype)
        self.host = host

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    nbytes = property(lambda self: self.host.nbytes)
    itemsize = property(lambda self: self.host.itemsize)
    strides = property(lambda self: self.host.strides)
    flags = property(lambda self: self.host.flags)
    T = property(lambda self: self._view(self.host.T))

    def _view(self, host):
        made = Array(self.module, None, None, self.data, host)
        made.base = self  # like CuPy's views
        if host.size:
            made.data = SimpleNamespace(ptr=host.__array_interface__["data"][0], mem=self.data)
        return made

    def __getitem__(self, key):
        if _has_indices(key):
            return self.module.call(lambda a, at: a[at], (self, key), {})
        return self._view(self.host[key])

    def __setitem__(self, key, value):
        if _has_indices(key):
            used = [a.data.ptr for a in _arrays([self, key, value]) if a.host.size]
            target, at, given = self.host, _host(key), _host(value)
            self.module.launch(lambda _: target.__setitem__(at, given), used)
            return
        part = self._view(self.host[key])
        _expect_fits(np.shape(_host(value)), part.shape)
        self.module.call(np.asarray, (value,), {"out": part})

    def __len__(self):
        return len(self.host)

    def reshape(self, *shape):
        if self.host.flags.c_contiguous:
            return self._view(self.host.reshape(*shape))
        return self.module.call(lambda a: a.reshape(*shape), (self,), {})

    def transpose(self, *axes):
        return self._view(self.host.transpose(*axes))

    def copy(self):
        return self.module.call(np.array, (self,), {})

    def astype(self, dtype, **_):
        return self.module.call(lambda a: a.astype(dtype), (self,), {})

    def get(self):
        made, source = np.empty(self.shape, self.dtype), self.host
        if self.size:
            self.module.launch(lambda _: made.__setitem__(..., source), [self.data.ptr])
        self.module.synchronize()
        return made

    def __buffer__(self, _flags):  # like CuPy's; Python uses it from 3.12 on
        raise TypeError("implicit conversion to a buffer is not allowed; use .get()")

    def __array__(self, *_args, **_kwargs):
        raise TypeError("implicit conversion to a NumPy array is not allowed; use .get()")


def _operator(name):
    def method(self, *others):
        return self.module.call(lambda a, *b: getattr(a, name)(*b), (self, *others), {})

    return method


def _in_place(name):
    def method(self, other):
        return self.module.call(getattr(np, name), (self, other), {"out": self})

    return method


def _reduction(name):
    def method(self, *args, **kwargs):
        return self.module.call(getattr(np, name), (self, *args), kwargs)

    return method


for _name, _function in (("iadd", "add"), ("isub", "subtract"), ("imul", "multiply"),
                         ("itruediv", "divide")):  # fmt: skip
    setattr(Array, f"__{_name}__", _in_place(_function))
for _name in ("max", "min", "sum", "prod", "mean", "all", "any"):
    setattr(Array, _name, _reduction(_name))
for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "matmul",
              "pow", "lt", "le", "gt", "ge", "eq", "ne", "and", "rand", "or", "ror",
              "invert"):  # fmt: skip
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))


class _Kernel:
    """A kernel in CUDA C++, compiled for the host and run as work of a stream."""

    def __init__(self, module, code):
        self.module, self.code = module, code

    def __call__(self, *args):
        used = [a.data.ptr for a in _arrays(args) if a.host.size]
        given = _host(args, lambda array: SimpleNamespace(host=array.host))
        self.module.launch(lambda _: self.code(*given), used)


class _RawKernel(_Kernel):
    """A kernel that also has a handle of the driver, for each device."""

    def __init__(self, module, code):
        super().__init__(module, code)
        self.name, self.functions = code.name, {}

    @property
    def kernel(self):
        device = self.module.device()
        if device not in self.functions:
            self.functions[device] = _Function(self.module.library, *self.code.compiled())
        return self.functions[device]


class _Function:
    def __init__(self, library, run, sizes):
        self.library, self.run = library, run
        self.ptr = library.fake_load(ctypes.cast(run, ctypes.c_void_p), sizes, len(sizes))

    def __del__(self):
        self.library.fake_unload(self.ptr)


class _StrideTricks:
    @staticmethod
    def as_strided(x, shape, strides):
        return x._view(np.lib.stride_tricks.as_strided(x.host, shape, strides))
