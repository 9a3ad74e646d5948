"""Kernels in CUDA C++, compiled by the host's compiler and run on NumPy arrays in one thread."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from tests.ep.fake_cuda.library import compiler

C_TYPES = {
    "bool": "bool", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t",
    "uint16": "uint16_t", "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t",
    "uint64": "uint64_t", "float16": "_Float16", "float32": "float", "float64": "double",
}  # fmt: skip

_PRELUDE = """
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#define __device__
#define __global__
#define __shared__ static
struct Place { long long x; };
static Place threadIdx, blockIdx, blockDim, gridDim;
static void __syncthreads() {}
template <typename Value> Value __shfl_xor_sync(unsigned, Value, unsigned) { abort(); }
static float __int_as_float(int bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
template <typename Word> Word atomicCAS(Word* at, Word expected, Word next) {
  Word found = *at;
  if (found == expected) *at = next;
  return found;
}
"""


def _compiled(code, symbol):
    return getattr(_library(code), symbol)


@cache
def _library(code):
    digest = hashlib.sha256((_PRELUDE + code).encode()).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"epprof-device-code-{digest}.so"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            source, made = Path(folder) / "code.cpp", Path(folder) / path.name
            source.write_text('#include "prelude.h"\n' + code)
            _compile(source, made, "-I", _prelude())
            made.rename(path)
    return ctypes.CDLL(str(path))


@cache
def _prelude():
    """Return the folder of the prelude, compiled: it takes longer than all the rest."""
    folder = tempfile.mkdtemp(prefix="epprof-prelude-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header = Path(folder) / "prelude.h"
    header.write_text(_PRELUDE)
    _compile(header, header.with_suffix(".h.gch"))
    return folder


def _compile(source, made, *options):
    flags = ["-std=c++14", "-O1", "-fno-strict-aliasing", "-w", "-shared", "-fPIC"]
    subprocess.run([compiler(), *flags, *options, str(source), "-o", str(made)], check=True)


def _parameters(text):
    """Yield whether each parameter is raw, its type and its name."""
    for part in text.split(","):
        words = part.split()
        yield words[0] == "raw", words[-2], words[-1]


class ElementwiseKernel:
    """Stand-in for ``cupy.ElementwiseKernel``."""

    def __init__(self, inputs, outputs, operation, name, preamble=""):
        self.inputs, self.outputs = list(_parameters(inputs)), list(_parameters(outputs))
        self.operation, self.name, self.preamble = operation, name, preamble

    def __call__(self, *args):
        named = [*self.inputs, *self.outputs]
        assert len(args) == len(named), f"{self.name} takes {len(named)} arguments"
        hosts = [_host(a) for a in args]
        types = {}
        for (_, kind, name), host in zip(named, hosts, strict=True):
            if kind in C_TYPES:
                continue
            known = types.setdefault(kind, host.dtype)
            assert known == host.dtype, f"{name} of {self.name}: {host.dtype} instead of {known}"
        written = hosts[len(self.inputs) :]
        shape = next(
            (h.shape for (raw, _, _), h in zip(self.outputs, written, strict=True) if not raw),
            np.broadcast_shapes(
                *(h.shape for (raw, _, _), h in zip(self.inputs, hosts, strict=False) if not raw)
            ),
        )
        buffers, lines = [], []
        for number, ((raw, kind, name), host) in enumerate(zip(named, hosts, strict=True)):
            dtype = types.get(kind) or np.dtype(kind)
            c_type = C_TYPES[dtype.name]
            values = host if raw else np.broadcast_to(host, shape)
            if raw and number >= len(self.inputs):
                assert values.flags.c_contiguous
            values = np.ascontiguousarray(values, dtype)
            buffers.append(values)
            place = f"(({c_type}*)p[{number}])"
            lines.append(f"auto {name} = {place};" if raw else f"{c_type}& {name} = {place}[i];")
        typedefs = "".join(f"typedef {C_TYPES[d.name]} {kind};\n" for kind, d in types.items())
        code = (
            f"{typedefs}{self.preamble}\n"
            'extern "C" void run(void** p, long long n) { for (long long i = 0; i < n; ++i) {\n'
            f"{' '.join(lines)}\n{self.operation};\n}} }}"
        )
        pointers = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
        _compiled(code, "run")(pointers, ctypes.c_longlong(int(np.prod(shape))))
        for (raw, _, _), host, made in zip(
            self.outputs, written, buffers[len(self.inputs) :], strict=True
        ):
            if not raw:
                host[...] = made


class RawKernel:
    """Stand-in for ``cupy.RawKernel``; a block has one thread, whatever the launch requests."""

    def __init__(self, code, name):
        # _Float16 stands for the assembly that converts it.
        code = code.replace("unsigned short bits;", "_Float16 bits;")
        code = re.sub(r'asm\("cvt\.f32\.f16.*?;\n', "y = x.bits;\n", code)
        code = re.sub(r'asm\("cvt\.rn\.f16\.f32.*?;\n', "at->bits = x;\n", code)
        assert "asm(" not in code
        self.name = name
        (self.signature,) = re.findall(rf"void {name}\((.*?)\)", code, re.DOTALL)
        arguments, sizes = [], []
        for number, part in enumerate(self.signature.split(",")):
            kind = " ".join(part.split()[:-1])
            is_pointer = kind.endswith("*")
            arguments.append(f"({kind})p[{number}]" if is_pointer else f"*({kind}*)p[{number}]")
            sizes.append("0" if is_pointer else f"sizeof({kind})")
        self.code = (
            f'{code}\nextern "C" void run(void** p, long long blocks) {{\n'
            "blockDim.x = 1;\ngridDim.x = blocks;\n"
            "for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)\n"
            f"{name}({', '.join(arguments)});\n}}\n"
            f'extern "C" const size_t sizes[] = {{{", ".join(sizes)}}};\n'
        )
        self.count = len(sizes)

    def compiled(self):
        """Return the compiled code, and the sizes of its parameters: 0 for pointers."""
        run = _compiled(self.code, "run")
        sizes = (ctypes.c_size_t * self.count).in_dll(_library(self.code), "sizes")
        return run, sizes

    def __call__(self, grid, block, args):
        assert 0 < block[0] <= 1024
        assert block[0] & (block[0] - 1) == 0, "a power of two"
        pointers, kept = [], []
        for value in args:
            if isinstance(value, np.generic) and value.dtype == np.uint64:
                pointers.append(int(value))  # an address
            elif isinstance(value, np.generic):
                kept.append(np.array(value))
                pointers.append(kept[-1].ctypes.data)
            else:
                host = _host(value)
                assert host.flags.c_contiguous
                pointers.append(host.ctypes.data)
        packed = (ctypes.c_void_p * len(pointers))(*pointers)
        _compiled(self.code, "run")(packed, ctypes.c_longlong(int(np.prod(grid))))


def _host(value):
    host = getattr(value, "host", value)
    assert not isinstance(value, np.ndarray), "an array of NumPy"
    return np.asarray(host)
