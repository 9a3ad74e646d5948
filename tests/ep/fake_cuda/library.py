"""The stand-in for NVIDIA's driver: built once, loaded instead of it, and controlled by tests."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.helpers.made_once import made_once

FOLDER = Path(__file__).parent
OUT_OF_MEMORY, ILLEGAL_ADDRESS = 2, 700


def compiler():
    return shutil.which("g++") or shutil.which("c++")


def build():
    """Compile the driver and return its path; the same source is compiled once on a machine.

    ``CXXFLAGS`` are added to the compiler's options, for sanitizers.
    """
    sources = sorted(FOLDER.glob("*.cpp"))
    texts = [path.read_bytes() for path in (*sources, FOLDER / "state.h")]
    flags = os.environ.get("CXXFLAGS", "")
    digest = hashlib.sha256(b"".join((*texts, flags.encode()))).hexdigest()[:16]
    options = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-pthread", "-shared", "-fPIC"]
    command = [compiler(), *options, *flags.split(), *map(str, sources), "-o"]
    made = made_once(
        f"fake-cuda-{digest}.so", lambda path: subprocess.run([*command, str(path)], check=True)
    )
    return str(made)


class FakeDriver:
    """The stand-in driver, with functions to inspect it and to inject faults."""

    loaded = False
    """Whether it has taken the driver's place in this process."""

    def __init__(self):
        self.path = build()
        self.library = ctypes.CDLL(self.path)
        self.library.fake_used.restype = ctypes.c_size_t
        self.library.fake_streams.restype = ctypes.c_size_t
        self.library.fake_calls.restype = ctypes.c_long
        self.library.fake_modules.restype = ctypes.c_size_t
        self.library.fake_set_memory.argtypes = [ctypes.c_int, ctypes.c_size_t]
        self.library.fake_capture.argtypes = [ctypes.c_void_p, ctypes.c_int]

    def misuse(self):
        """Return the errors of callers since the last call."""
        text = ctypes.create_string_buffer(1 << 16)
        self.library.fake_misuse(text, len(text))
        return text.value.decode().splitlines()

    def fail(self, name, result, *, skip=0):
        """Make a function fail once, after `skip` more calls."""
        self.library.fake_fault(name.encode(), result, skip)

    def used(self, device=0):
        return self.library.fake_used(device)

    def streams(self, device=0):
        return self.library.fake_streams(device)

    def modules(self):
        """Return the number of modules that are loaded."""
        return self.library.fake_modules()

    def calls(self, name):
        return self.library.fake_calls(name.encode())

    def graphs(self):
        """Return the numbers of captures in progress, of graphs, and of executable graphs."""
        numbers = [ctypes.c_size_t() for _ in range(3)]
        self.library.fake_graphs(*map(ctypes.byref, numbers))
        return tuple(number.value for number in numbers)

    def create_stream(self):
        stream = ctypes.c_void_p()
        assert self.library.cuStreamCreate(ctypes.byref(stream), 1) == 0
        return stream.value

    def destroy_stream(self, stream):
        assert self.library.cuStreamDestroy_v2(ctypes.c_void_p(stream)) == 0

    def create_stream_of(self, device):
        with self.module.cuda.Device(device):
            return self.create_stream()

    def destroy_stream_of(self, device, stream):
        with self.module.cuda.Device(device):
            self.destroy_stream(stream)

    def set_delay(self, microseconds):
        """Make each piece of a stream's work start this much later."""
        self.library.fake_set_delay(microseconds)

    @contextlib.contextmanager
    def holding_allocations(self):
        """Make cuMemAlloc wait."""
        self.library.fake_hold_allocations(1)
        try:
            yield
        finally:
            self.library.fake_hold_allocations(0)

    @contextlib.contextmanager
    def memory_of(self, nbytes, device=0):
        """Limit a device's memory."""
        self.library.fake_set_memory(device, nbytes)
        yield
        self.library.fake_set_memory(device, 1 << 30)

    @contextlib.contextmanager
    def sticky(self, result=ILLEGAL_ADDRESS):
        """Make every call fail, as after an error that a context does not survive."""
        self.library.fake_set_sticky(result)
        yield
        self.library.fake_set_sticky(0)

    @contextlib.contextmanager
    def capturing(self, stream):
        """Report a stream as being captured."""
        self.library.fake_capture(stream, 1)
        yield
        self.library.fake_capture(stream, 0)
