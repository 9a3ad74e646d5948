"""Loading of libcupti, once per process."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.recording.cupti import find_library, layouts
from epprof_nb.util.cuda_state import broken_by_fork

_KIND_TABLE = 128  # kKinds in native/cupti/record_layout.h


def packed_layout(api_version: int) -> bytes:
    """Pack the layout of one CUPTI version as the native ``RecordLayout``."""
    layout = layouts.layout_for(api_version)
    record_of_kind = np.zeros(_KIND_TABLE, np.int32)
    for number, (record, _) in enumerate(layouts.NATIVE_RECORDS, 1):
        for kind in layouts.RECORD_KINDS[record]:
            record_of_kind[kind] = number
    return np.concatenate([record_of_kind, layout.packed(), layout.packed_callbacks()]).tobytes()


def driver_present() -> bool:
    """Whether this machine has an NVIDIA driver with a device. Does not start CUDA."""
    return Path("/dev/nvidiactl").exists() and find_library.find_driver() is not None


def load() -> tuple[find_library.CuptiLibrary, int]:
    """Locate and load libcupti, if that has not been done yet.

    Returns
    -------
    library, version
        The library, and the version of its interface.

    Raises
    ------
    CaptureError
        If this process cannot use any libcupti.
    """
    if broken_by_fork():
        raise CaptureError(
            "GPU activity cannot be recorded in this process: it was forked from a process "
            "that uses CUDA, and CUDA does not work in forked children. Start worker processes "
            "with the 'spawn' method."
        )
    return _load()


@cache
def _load() -> tuple[find_library.CuptiLibrary, int]:
    driver = find_library.find_driver()
    if driver is None:
        raise CaptureError(
            "GPU activity cannot be recorded: the NVIDIA driver (libcuda.so.1) was not found on "
            "this machine. If the machine has a GPU, install the driver. Run `epprof doctor` for "
            "details."
        )
    libcupti = find_library.locate_libcupti()
    try:
        version = _native.cupti_load(libcupti.path, driver)
        _native.cupti_set_layout(packed_layout(version))
    except RuntimeError as error:
        raise CaptureError(
            f"GPU activity cannot be recorded: {libcupti.path} ({libcupti.origin}) could not "
            f"be used: {error}. Run `epprof doctor` to see how to fix this."
        ) from error
    return libcupti, version
