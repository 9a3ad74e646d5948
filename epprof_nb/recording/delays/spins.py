"""Delays by use of the processor, and the time for which threads wait for a processor."""

from __future__ import annotations

from epprof_nb import _native
from epprof_nb.recording.session.host_load import read_waits

_KNOWS_WAITS = any(read_waits().waits_ns.values())


def spin_on_host(length_ns: int, keeps_gil: bool) -> int:  # noqa: FBT001
    """Use the processor, with or without the GIL; returns for how long.

    The time in which the system suspended the thread counts as a wait of the repeat, and as a part
    of the delay only if such waits are unknown.
    """
    elapsed, on_processor = _native.spin(length_ns, keeps_gil)
    return on_processor if _KNOWS_WAITS else elapsed
