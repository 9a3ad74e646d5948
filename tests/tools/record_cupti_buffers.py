"""Record raw CUPTI activity buffers, with the offsets that CUPTI's own walk finds, for the tests.

Usage: ``python -m tests.tools.record_cupti_buffers LIBCUPTI OUT.npz`` on a machine with a GPU and
CuPy. Only ctypes is used, so that the recordings are independent of the decoder under test.
"""

from __future__ import annotations

import ctypes
import os
import sys

import cupy
import numpy as np

KINDS = {
    "MEMCPY": 1,
    "MEMSET": 2,
    "DRIVER": 4,
    "RUNTIME": 5,
    "CONCURRENT_KERNEL": 10,
    "OVERHEAD": 17,
    "SYNCHRONIZATION": 38,
    "EXTERNAL_CORRELATION": 39,
    "MEMORY2": 49,
}
SOURCE = """
extern "C" __global__ void recorded(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles);
}
"""
SIZE = 1 << 20


def main(library: str, out: str) -> None:
    """Run a little work with every kind enabled and save the buffers."""
    cupti = ctypes.CDLL(library)
    version = ctypes.c_uint32()
    cupti.cuptiGetVersion(ctypes.byref(version))
    kept: list[bytes] = []
    offsets: list[list[int]] = []
    memory = [ctypes.create_string_buffer(SIZE + 8) for _ in range(8)]
    free = list(memory)

    @ctypes.CFUNCTYPE(
        None,
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    )
    def requested(buffer, size, records):
        address = ctypes.addressof(free.pop())
        buffer[0] = (address + 7) // 8 * 8
        size[0] = SIZE
        records[0] = 0

    @ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
    )
    def completed(_context, _stream, buffer, _size, valid):
        kept.append(ctypes.string_at(buffer, valid))
        found = []
        record = ctypes.c_void_p()
        while (
            valid
            and cupti.cuptiActivityGetNextRecord(
                ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)
            )
            == 0
        ):
            found.append(record.value - buffer)
        offsets.append(found)

    cupti.cuptiActivityRegisterCallbacks(requested, completed)
    kernel = cupy.RawKernel(SOURCE, "recorded")
    x = cupy.zeros(1000)
    kernel((1,), (1,), (10,))
    cupy.cuda.Device().synchronize()
    enabled = [name for name, kind in KINDS.items() if cupti.cuptiActivityEnable(kind) == 0]
    launches = 25
    for i in range(launches):
        cupti.cuptiActivityPushExternalCorrelationId(3, ctypes.c_uint64(i + 1))
        kernel((i + 1, 2, 3), (4, 5, 6), (1000,), shared_mem=256)
        last = ctypes.c_uint64()
        cupti.cuptiActivityPopExternalCorrelationId(3, ctypes.byref(last))
    cupy.asarray(np.arange(500.0))
    x.get()
    cupy.cuda.runtime.memset(x.data.ptr, 0, 800)
    block = cupy.cuda.runtime.malloc(4096)
    cupy.cuda.runtime.free(block)
    cupy.cuda.Device().synchronize()
    cupti.cuptiActivityFlushAll(1)
    np.savez_compressed(
        out,
        version=version.value,
        launches=launches,
        enabled=np.array(enabled),
        **{f"buffer_{i}": np.frombuffer(b, np.uint8) for i, b in enumerate(kept)},
        **{f"offsets_{i}": np.array(o, np.int64) for i, o in enumerate(offsets)},
    )
    print(f"CUPTI {version.value}: {[len(o) for o in offsets]} records of {enabled} in {out}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    os._exit(0)  # CUPTI would call back into ctypes objects that are gone by then
