"""Peaks of devices in a profile's info; `epprof_nb.analysis.peaks.measure_peaks` measures them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peaks of a device.

    Attributes
    ----------
    flops_per_s
        ONNX Runtime's name of an element type to FLOPs per second of a matrix product.
    bytes_per_s
        Bytes read and written per second by a copy.
    link_bytes_per_s
        ``"HtoD"`` and ``"DtoH"`` to bytes per second of a copy of pinned memory; empty if the
        device has no link.
    """

    flops_per_s: dict[str, float]
    bytes_per_s: float
    link_bytes_per_s: dict[str, float] = field(default_factory=dict)

    def to_info(self) -> dict[str, Any]:
        """Return the entry of ``info["peaks"]``."""
        entry = {"flops_per_s": dict(self.flops_per_s), "bytes_per_s": self.bytes_per_s}
        if self.link_bytes_per_s:
            entry["link_bytes_per_s"] = dict(self.link_bytes_per_s)
        return entry

    def flops_of(self, dtype: str) -> float | None:
        """Return the FLOPs per second of an element type, else of float; None if unknown."""
        return self.flops_per_s.get(dtype, self.flops_per_s.get("float"))


def peaks_of(info: Mapping[str, Any]) -> dict[int, Peaks]:
    """Return the peaks in a profile's info, by device id. Malformed entries are left out."""
    entries, found = info.get("peaks"), {}
    for device, entry in entries.items() if isinstance(entries, dict) else ():
        try:
            flops, link = (
                {str(k): float(v) for k, v in entry.get(key, {}).items() if float(v) > 0}
                for key in ("flops_per_s", "link_bytes_per_s")
            )
            peaks = Peaks(flops, float(entry["bytes_per_s"]), link)
            if peaks.bytes_per_s > 0:
                found[int(device)] = peaks
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return found
