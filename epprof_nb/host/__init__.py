"""The host device: an accelerator made of the CPU's own threads, for machines without a GPU.

Its streams are worker threads, its kernels NumPy functions, and everything about them is real:
launches return before the work is done, streams overlap, events order them, and each recorded
time was measured. It follows the CUDA runtime in semantics and names, so that code, profiles
and tests read the same on both::

    from epprof_nb import host

    x = host.to_device(np.ones(1_000_000, np.float32))
    y = host.empty(x.shape, x.dtype)
    host.launch(np.sqrt, x, y)          # returns at once
    print(host.to_host(y))              # waits

While a profile records, each call is logged as an API call (``hostLaunchKernel``,
``hostMemcpyAsync``, ...) with a correlation id, and what it launched as an activity. In a
profile the host device has the device id `HOST_DEVICE_ID`, which no GPU has, and its correlation
ids begin at 2**32, beyond CUDA's.

Python's lock is held whenever a kernel is not inside a large NumPy operation, so a caller that
is busy in Python can delay the start and the end of a kernel by up to its switch interval
(``sys.getswitchinterval()``, 5 ms); the recorded times include it.
"""

from epprof_nb.host._queue import DeviceError
from epprof_nb.host.device import CONTEXT_ID, HOST_DEVICE_ID, device_name
from epprof_nb.host.memory import Array, MemoryInfo, empty, memory_info, set_memory_limit
from epprof_nb.host.operations import launch, memcpy, memset, to_device, to_host
from epprof_nb.host.stream import Event, Stream, default_stream, synchronize

__all__ = [
    "CONTEXT_ID",
    "HOST_DEVICE_ID",
    "Array",
    "DeviceError",
    "Event",
    "MemoryInfo",
    "Stream",
    "default_stream",
    "device_name",
    "empty",
    "launch",
    "memcpy",
    "memory_info",
    "memset",
    "set_memory_limit",
    "synchronize",
    "to_device",
    "to_host",
]
