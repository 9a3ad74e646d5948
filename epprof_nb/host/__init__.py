"""The host device: an accelerator that runs on CPU threads, for machines without a GPU.

Its streams are worker threads and its kernels are NumPy functions. Execution is truly
asynchronous: launches return before the work is done, streams overlap, events order them, and all
recorded times are measured. Semantics and names follow the CUDA runtime, so that code, profiles
and tests look the same on both::

    from epprof_nb import host

    x = host.to_device(np.ones(1_000_000, np.float32))
    y = host.empty(x.shape, x.dtype)
    host.launch(np.sqrt, x, y)          # returns at once
    print(host.to_host(y))              # waits

During a profile, each call is recorded as an API call (``hostLaunchKernel``, ``hostMemcpyAsync``,
...) with a correlation id, and the work it launched as an activity. The device id of the host
device is `HOST_DEVICE_ID`, which no GPU has. Its correlation ids start at 2**32, above the ids of
CUDA.

A kernel holds the GIL except inside large NumPy operations. A caller that is busy in Python can
therefore delay the start and end of a kernel by up to the switch interval
(``sys.getswitchinterval()``, 5 ms), which is part of the recorded times.
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
