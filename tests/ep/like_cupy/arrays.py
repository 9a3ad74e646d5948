"""A module for NumPy arrays with CuPy's limits, which counts functions that wait for a device.

`Module` has the functions, parameters and dtypes that tests/data/cupy_api.json lists. Its arrays
are not converted to NumPy arrays, nor mixed with them.
"""

from __future__ import annotations

import collections
import functools
import json
from types import SimpleNamespace

import numpy as np

from tests.ep.like_cupy.compiled import ElementwiseKernel, RawKernel
from tests.paths import DATA

API = json.loads((DATA / "cupy_api.json").read_text())
CONSTANTS = ("inf", "nan", "newaxis", "pi", "float16", "float32", "float64", "int8", "int16",
             "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool_", "dtype")  # fmt: skip
WAITING = {
    "argwhere", "array_equal", "asnumpy", "compress", "flatnonzero", "item", "nonzero",
    "sliding_window_view", "tobytes", "tolist", "unique", "unravel_index",
}  # fmt: skip
"""Functions whose result or checks need the data on the host."""
FROM_HOST = {"array", "asarray", "ascontiguousarray", "asanyarray"}
AT = {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}
"""Ufuncs with a method ``at``."""

waits = collections.Counter()
"""Number of times that each function waited for the device, since the counter was cleared."""


def _checked(name, entry, kwargs):
    known = entry.get("parameters")
    if "types" in entry:
        known = ["out", "dtype", "casting"]
    unknown = [key for key in kwargs if known is not None and key not in known]
    if unknown and "kwargs" not in known:
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}")


def _expect_types(name, entry, inputs):
    """Raise TypeError if a ufunc of CuPy has no loop for the dtypes that NumPy would compute in."""
    given = [x.host.dtype if isinstance(x, Array) else x for x in inputs]
    common = np.result_type(*given)
    for types in entry["types"]:
        if all(kind != "E" and np.can_cast(common, kind) for kind in types.split("->")[0]):
            return
    raise TypeError(f"Wrong type ({common}) of arguments for cupy_{name}")


def _host(value):
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, Array):
        return value.host
    if isinstance(value, list | tuple):
        return type(value)(map(_host, value))
    return value


def _wrap(value):
    if isinstance(value, np.ndarray | np.generic):
        return Array(np.asarray(value))
    if isinstance(value, list | tuple):
        return type(value)(map(_wrap, value))
    return value


def call(name, function, entry, args, kwargs):
    _checked(name, entry, kwargs)
    out = kwargs.get("out")
    if name == "where" and not hasattr(args[0], "astype"):  # a scalar of Python
        raise AttributeError(f"{type(args[0]).__name__!r} object has no attribute 'astype'")
    if name in WAITING or (name == "where" and len(args) == 1):
        waits[name] += 1
    if "types" in entry:
        _expect_types(name, entry, args)
    if name in FROM_HOST:
        result = function(*(a.host if isinstance(a, Array) else a for a in args), **kwargs)
        if not isinstance(args[0], Array):
            waits["copy from the host"] += 1
        return Array(result)
    result = function(*map(_host, args), **{k: _host(v) for k, v in kwargs.items()})
    return _wrap(result) if out is None else out


class _Functions:
    """Functions of a module of NumPy that CuPy has."""

    def __init__(self, path=""):
        self._entries = API[path]
        self._numpy = functools.reduce(getattr, path.split("."), np) if path else np

    def __getattr__(self, name):
        if name not in self._entries:
            raise AttributeError(f"module 'cupy' has no attribute {name!r}")
        function, entry = getattr(self._numpy, name), self._entries[name]
        return lambda *args, **kwargs: call(name, function, entry, args, kwargs)


class Module(_Functions):
    """Stand-in for the module ``cupy``."""

    __name__ = __name__

    def __init__(self):
        super().__init__()
        for name in CONSTANTS:
            setattr(self, name, getattr(np, name))
        self.fft, self.linalg = _Functions("fft"), _Functions("linalg")
        self.lib = SimpleNamespace(stride_tricks=_Functions("lib.stride_tricks"))
        self.ogrid = _Grid()
        self.ElementwiseKernel, self.RawKernel = ElementwiseKernel, RawKernel
        # No device of another module, whose constants are kept by its number.
        self.cuda = SimpleNamespace(runtime=SimpleNamespace(getDevice=lambda: -1))


class _Grid:
    def __getitem__(self, key):
        return _wrap(np.ogrid[key])


class Array:
    """An array that the host cannot read without waiting."""

    def __init__(self, host):
        self.host = host

    @property
    def data(self):
        return SimpleNamespace(ptr=self.host.__array_interface__["data"][0])

    def get(self):
        """Wait, once for a constant that is kept: another run of the node does not."""
        return self.host.copy()

    def __getattr__(self, name):
        if name not in API["ndarray"]:
            raise AttributeError(f"'cupy.ndarray' object has no attribute {name!r}")
        value, entry = getattr(self.host, name), API["ndarray"][name]
        if not callable(value):
            return Array(value) if isinstance(value, np.ndarray) else value
        return lambda *args, **kwargs: call(name, value, entry, args, kwargs)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method == "at" and ufunc.__name__ not in AT:
            raise NotImplementedError(f"`cupy_{ufunc.__name__}.at` is not supported yet")
        if method not in ("at", "__call__") or ufunc.__name__ not in API[""]:
            return NotImplemented
        if isinstance(kwargs.get("out"), tuple):
            (kwargs["out"],) = kwargs["out"]
        function = ufunc if method == "__call__" else ufunc.at
        entry = API[""][ufunc.__name__] if method == "__call__" else {}
        return call(ufunc.__name__, function, entry, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        if function.__name__ not in API[""]:
            return NotImplemented
        return call(function.__name__, function, API[""][function.__name__], args, kwargs)

    def __array__(self, *_args, **_kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def _key(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, np.ndarray) and k.ndim for k in keys):
            waits["copy from the host"] += 1
        return tuple(k.host if isinstance(k, Array) else k for k in keys)

    def _has_mask(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        return any(isinstance(k, Array) and k.host.dtype == bool for k in keys)

    def __getitem__(self, key):
        if self._has_mask(key):
            waits["mask"] += 1
        return _wrap(self.host[self._key(key)])

    def __setitem__(self, key, value):
        if self._has_mask(key) and isinstance(value, Array) and value.host.ndim:
            waits["mask"] += 1
        if isinstance(value, list | tuple):
            raise TypeError(f"Unsupported type {type(value)}")
        self.host[self._key(key)] = _host(value)

    def __len__(self):
        return len(self.host)

    def __iter__(self):
        return (Array(np.asarray(part)) for part in self.host)


def _operator(name, ufunc, *, swapped=False, in_place=False):
    entry = API[""].get(ufunc.__name__, {})

    def method(self, *others):
        if any(not isinstance(o, Array | np.generic | int | float | complex) for o in others):
            raise TypeError(f"Unsupported type {type(others[0])}")
        args = (*others, self) if swapped else (self, *others)
        kwargs = {"out": self} if in_place else {}
        return call(ufunc.__name__, ufunc, entry, args, kwargs)

    method.__name__ = name
    return method


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
    "matmul": np.matmul,
}.items():  # fmt: skip
    setattr(Array, f"__{_name}__", _operator(_name, _ufunc))
    setattr(Array, f"__r{_name}__", _operator(_name, _ufunc, swapped=True))
    setattr(Array, f"__i{_name}__", _operator(_name, _ufunc, in_place=True))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal, "neg": np.negative, "invert": np.invert, "abs": np.absolute,
}.items():  # fmt: skip
    setattr(Array, f"__{_name}__", _operator(_name, _ufunc))


def _scalar(name):
    def method(self):
        waits[f"{name}()"] += 1
        return getattr(self.host, f"__{name}__")()

    return method


for _name in ("bool", "int", "float", "index"):
    setattr(Array, f"__{_name}__", _scalar(_name))
