"""Recording of NVTX ranges and marks, which many libraries and kernels emit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.recording.nvtx.injection import VARIABLE, missing_file

if TYPE_CHECKING:
    from epprof_nb.core.options import Options


class NvtxFramework:
    """Records ranges and marks of NVTX.

    See `epprof_nb.recording.frameworks.framework.Framework`.
    """

    name = "nvtx"

    def __init__(self) -> None:
        self._dropped_before = (0, 0)

    def start(self, options: Options) -> None:  # noqa: ARG002 - it has no options
        """Record the ranges and marks of the attached libraries."""
        self._dropped_before = _native.nvtx_dropped()
        _native.nvtx_record(True)  # noqa: FBT003 - positional only

    def extend(self, options: Options) -> None:
        """Do nothing: everything is recorded."""

    def complete(self) -> None:
        """Do nothing: the native core has everything."""

    def notes(self) -> list[str]:
        """Return notes if no library can attach, and on dropped payloads."""
        notes = []
        file = missing_file()
        if file is not None:
            notes.append(
                f"Ranges of NVTX are not recorded: {VARIABLE} names {file}, which does not exist. "
                f"Unset {VARIABLE} before Python starts."
            )
        attributes, payloads = (
            now - before
            for now, before in zip(_native.nvtx_dropped(), self._dropped_before, strict=True)
        )
        if attributes:
            notes.append(
                f"{attributes:,} ranges of NVTX have no payload: a process keeps at most 1,048,576 "
                "distinct combinations of domain, category, color and payload. Restart Python to "
                "record further ones."
            )
        if payloads:
            notes.append(
                f"{payloads:,} ranges of NVTX have no payload: a process keeps at most 65,536 "
                "distinct payloads with a schema, of 64 MiB in total. Restart Python to record "
                "further ones."
            )
        return notes

    def stop(self) -> None:
        """Make the functions of the attached libraries do nothing."""
        _native.nvtx_record(False)  # noqa: FBT003 - positional only
