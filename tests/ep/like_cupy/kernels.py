"""The package's kernels, called with arrays of the stand-in for CuPy instead of NumPy's."""

from __future__ import annotations

import collections
import sys
from types import ModuleType

from epprof_nb.ep import cuda
from epprof_nb.ep.kernels.shared import special
from tests.ep.like_cupy.arrays import Array, Module, waits

MODULE = Module()


class _Context:
    """The context of a kernel on a device: outputs are arrays of the stand-in."""

    xp = MODULE
    device = "cuda:0"

    def __init__(self, ctx, host_outputs):
        self._ctx, self._host_outputs, self._next = ctx, host_outputs, 0

    def __getattr__(self, name):
        return getattr(self._ctx, name)

    def out(self, shape, dtype=None, *, index=None):
        number = self._next if index is None else index
        self._next = number + 1
        made = self._ctx.out(shape, dtype, index=index)
        return made if made is None or number in self._host_outputs else Array(made)


class LikeCuPy:
    """Within it, kernels see arrays of the stand-in; counts what waits, by type of operator."""

    def __init__(self, kernels):
        self._kernels = kernels
        self.calls = {}
        self.waits = collections.defaultdict(collections.Counter)

    def _adapted(self, kernel, function):
        declared = kernel.declaration

        def run(ctx, *inputs):
            given = [
                x if x is None or number in declared.host_inputs else Array(x)
                for number, x in enumerate(inputs)
            ]
            key = (ctx.domain, ctx.op_type)
            self.calls[key] = self.calls.get(key, 0) + 1
            waits.clear()
            try:
                function(_Context(ctx, declared.host_outputs), *given)
            finally:
                self.waits[ctx.op_type].update(waits)

        run.__name__ = getattr(function, "__name__", "kernel")
        return run

    def __enter__(self):
        cupyx = {name: ModuleType(name) for name in ("cupyx", "cupyx.scipy")}
        scipy_special = ModuleType("cupyx.scipy.special")
        scipy_special.erf = _erf
        cupyx["cupyx.scipy"].special = scipy_special
        self._modules = {**cupyx, "cupyx.scipy.special": scipy_special}
        self._before = {name: sys.modules.get(name) for name in self._modules}
        sys.modules.update(self._modules)
        self._array_module, cuda.array_module = cuda.array_module, lambda: MODULE
        self._functions = [(k, k.function) for k in self._kernels]
        for kernel, function in self._functions:
            kernel.cell[0] = self._adapted(kernel, function)
        return self

    def __exit__(self, *_):
        for kernel, function in self._functions:
            kernel.cell[0] = function
        cuda.array_module = self._array_module
        for name, module in self._before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _erf(x, out=None):
    import numpy as np

    result = special.erf(np, x.host)
    if out is None:
        return Array(result)
    out.host[...] = result
    return out
