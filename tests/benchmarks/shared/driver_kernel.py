"""A small kernel, launched through NVIDIA's driver without any framework."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING

from epprof_nb.recording.cupti.find_library import find_driver

if TYPE_CHECKING:
    from collections.abc import Callable

_PTX = b"""
.version 7.0
.target sm_52
.address_size 64
.visible .entry add_one(.param .u64 address) {
  .reg .u64 %a<3>; .reg .f32 %f<3>;
  ld.param.u64 %a1, [address];
  cvta.to.global.u64 %a2, %a1;
  ld.global.f32 %f1, [%a2];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%a2], %f2;
  ret;
}
"""


class DriverKernel:
    """A kernel that adds 1 to a number on the first GPU, with a stream of its own.

    The first GPU's primary context becomes that of the calling thread.

    Attributes
    ----------
    driver : ctypes.CDLL
    context, stream : ctypes.c_void_p
        The context, and the stream, which waits for no other.

    Raises
    ------
    OSError, RuntimeError
        If there is no driver, or a call of it fails.
    """

    def __init__(self) -> None:
        path = find_driver()
        if path is None:
            raise OSError("NVIDIA's driver was not found")
        self.driver = ctypes.CDLL(path)
        device, self.context = ctypes.c_int(), c_void_p()
        module, self._function = c_void_p(), c_void_p()
        self.stream, self._address = c_void_p(), c_uint64()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", byref(self.context), device)
        self._call("cuCtxSetCurrent", self.context)
        self._call("cuModuleLoadData", byref(module), ctypes.c_char_p(_PTX))
        self._call("cuModuleGetFunction", byref(self._function), module, b"add_one")
        self._call("cuMemAlloc_v2", byref(self._address), ctypes.c_size_t(256))
        self._call("cuStreamCreate", byref(self.stream), 1)
        self._sizes = [c_uint32(1)] * 6
        self._arguments = (c_void_p * 1)(ctypes.cast(ctypes.pointer(self._address), c_void_p))
        self.launch()
        self.synchronize()

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed with {status}")

    def launch(self) -> None:
        """Launch the kernel."""
        status = self.driver.cuLaunchKernel(
            self._function, *self._sizes, c_uint32(0), self.stream, self._arguments, None
        )
        if status:
            raise RuntimeError(f"cuLaunchKernel failed with {status}")

    def synchronize(self) -> None:
        """Wait for all launches."""
        self._call("cuCtxSynchronize")

    def graph(self, nodes: int) -> Callable[[], None]:
        """Return a function that replays a graph of kernels, one after the other."""
        graph, executable = c_void_p(), c_void_p()
        self._call("cuStreamBeginCapture_v2", self.stream, 1)
        for _ in range(nodes):
            self.launch()
        self._call("cuStreamEndCapture", self.stream, byref(graph))
        self._call("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0))
        return lambda: self._call("cuGraphLaunch", executable, self.stream)
