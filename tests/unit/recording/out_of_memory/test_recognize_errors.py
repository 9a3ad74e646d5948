"""Recognition of out-of-memory errors, with messages of the libraries."""

from __future__ import annotations

import pytest

from epprof_nb.recording.out_of_memory.recognize_errors import (
    ON_HOST,
    allocation_error,
    chain,
    message_of,
)


def raised(module: str, name: str, message: str, base: type[Exception] = RuntimeError):
    """An error of a library that need not be installed."""
    return type(name, (base,), {"__module__": module})(message)


TORCH = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 139.81 GiB of "
    "which 1.20 GiB is free. Including non-PyTorch memory, this process has 138.60 GiB memory in "
    "use. Of the allocated memory 137.00 GiB is allocated by PyTorch, and 12.50 MiB is reserved by "
    "PyTorch but unallocated."
)
ASYNC = (
    "Allocation on device 1 would exceed allowed memory. (out of memory)\n"
    "Currently allocated     : 1.25 GiB\nRequested               : 3.00 GiB\n"
    "Device limit            : 139.80 GiB\nFree (according to CUDA): 137.17 GiB\n"
    "PyTorch limit (set by user-supplied memory fraction)\n                        : 2.80 GiB"
)
"""Of PyTorch with the allocator cudaMallocAsync."""

ORT = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Exp "
    "node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 "
    "void* onnxruntime::BFCArena::AllocateRawInternal(size_t) Failed to allocate memory for "
    "requested buffer of size 400000000\n"
)
STATE = "onnxruntime.capi.onnxruntime_pybind11_state"
KNOWN = [
    (raised("torch", "OutOfMemoryError", TORCH), "torch", 2 * 2**30, 1),
    (raised("torch", "OutOfMemoryError", ASYNC), "torch", 3 * 2**30, 1),
    (raised("torch", "AcceleratorError", "CUDA error: out of memory"), "torch", None, None),
    (
        raised("cupy.cuda.memory", "OutOfMemoryError",
               "Out of memory allocating 1,200,000,000 bytes (allocated so far: 3,200,000,000 "
               "bytes, limit set to: 4,000,000,000 bytes)."),
        "cupy", 1_200_000_000, None,
    ),
    (
        raised("cupy_backends.cuda.api.runtime", "CUDARuntimeError",
               "cudaErrorMemoryAllocation: out of memory"),
        "cupy", None, None,
    ),
    (
        raised("jaxlib._jax", "XlaRuntimeError",
               "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8000000000 bytes."),
        "jax", 8_000_000_000, None,
    ),
    (
        raised("jax.errors", "JaxRuntimeError",
               "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7.45GiB."),
        "jax", round(7.45 * 2**30), None,
    ),
    (raised(STATE, "RuntimeException", ORT), "onnxruntime", 400_000_000, None),
    (
        raised(STATE, "Fail", "CUDA failure 2: out of memory ; GPU=3 ; expr=cudaMalloc(&p)"),
        "onnxruntime", None, 3,
    ),
    (
        raised("numba.cuda.cudadrv.driver", "CudaAPIError",
               "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"),
        "numba", None, None,
    ),
    (
        raised("pycuda._driver", "MemoryError", "cuMemAlloc failed: out of memory"),
        "pycuda", None, None,
    ),
    (
        raised("rmm", "MemoryError", "std::bad_alloc: out_of_memory: CUDA error", MemoryError),
        "rmm", None, None,
    ),
    (RuntimeError("CUDA error: out of memory"), "", None, None),
    (
        MemoryError("the host device is out of memory: 80 MB requested, 390 MB of 400 MB in use."),
        "host", 80_000_000, ON_HOST,
    ),
    (
        MemoryError("output 0 (y): the host device has no memory left for a tensor of 4096 bytes"),
        "onnxruntime", 4096, ON_HOST,
    ),
    (
        MemoryError("output 0 (y): cuda:1 has no memory left for a tensor of 4096 bytes; tensors"),
        "onnxruntime", 4096, 1,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("error", "library", "requested", "device"), KNOWN)
def test_errors_of_libraries(error, library, requested, device):
    found = allocation_error(error)
    assert found == (error, library, requested, device)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8.00 TiB for an array with shape (10, 10)"),
        MemoryError(),
        RuntimeError("the pool of workers is out of memory cards"),
        ValueError("RESOURCE_EXHAUSTED"),
        raised("torch", "AcceleratorError", "CUDA error: an illegal memory access was encountered"),
        raised(STATE, "Fail", "[ONNXRuntimeError] : 1 : FAIL : the model is invalid"),
        raised("cupy.cuda.runtime", "CUDARuntimeError", "cudaErrorInvalidValue: invalid argument"),
        KeyboardInterrupt(),
    ],
)
def test_other_errors(error):
    assert allocation_error(error) is None


def test_the_note_of_the_provider_of_kernels_in_python():
    error = raised(STATE, "Fail", "[ONNXRuntimeError] : 1 : FAIL : MatMul failed")
    assert allocation_error(error) is None
    error.add_note("cuda:1 has no memory left for a tensor of 4096 bytes; tensors use 12 bytes")
    assert allocation_error(error)[1:] == ("onnxruntime", 4096, 1)


def test_notes_of_others_say_nothing_beside_the_message():
    error = raised("torch", "OutOfMemoryError", TORCH)
    expected = allocation_error(error)
    error.add_note("out of memory allocating 8 bytes on cuda:7")
    assert allocation_error(error) == expected
    error.__notes__ = 5
    assert allocation_error(error) == expected
    other = ValueError("no")
    other.add_note(str(KNOWN[0][0]))
    assert allocation_error(other) is None


def test_the_middle_of_a_long_message_is_not_read():
    dump = "\n  Buffer 1: requested  : of 1 GPU\n" * 10_000
    first = raised("torch", "RuntimeError", f"CUDA out of memory. Tried to allocate 2 MiB. {dump}")
    assert allocation_error(first)[1:3] == ("torch", 2 << 20)
    last = raised("torch", "RuntimeError", f"{dump} CUDA out of memory. Tried to allocate 2 MiB.")
    assert allocation_error(last)[1:3] == ("torch", 2 << 20)
    assert len(message_of(last)) == 100_001
    between = raised("torch", "RuntimeError", f"{dump} CUDA out of memory. {dump}")
    assert allocation_error(between) is None


def chained(cause=None, context=None, *, suppressed=False):
    error = ValueError("the model cannot be loaded")
    error.__context__ = context
    error.__cause__ = cause
    if cause is None:
        error.__suppress_context__ = suppressed
    return error


def test_causes_contexts_and_groups():
    memory = KNOWN[0][0]
    assert allocation_error(chained(cause=memory)).error is memory
    assert allocation_error(chained(context=memory)).error is memory
    assert allocation_error(chained(context=memory, suppressed=True)) is None
    group = ExceptionGroup("two", [ValueError(), ExceptionGroup("one", [chained(cause=memory)])])
    assert allocation_error(group).error is memory


def test_an_error_that_quotes_the_message_is_not_the_one():
    memory = KNOWN[0][0]
    quoting = RuntimeError(f"training failed: {memory} CUDA out of memory")
    assert allocation_error(quoting).error is quoting
    quoting.__cause__ = memory
    assert allocation_error(quoting).error is memory


def test_the_last_of_several_tries_is_the_one():
    first, last = KNOWN[0][0], raised("torch", "OutOfMemoryError", TORCH)
    last.__context__ = first
    assert allocation_error(last).error is last


def test_a_chain_that_leads_to_itself_ends():
    one, other = ValueError(), ValueError()
    one.__cause__, other.__cause__ = other, one
    assert list(chain(one)) == [one, other]


def test_an_error_that_cannot_be_written():
    class BrokenError(Exception):
        def __str__(self):
            raise ValueError

    assert allocation_error(BrokenError()) is None
