"""Bandwidth of the link between a device and the host: measured, else from PCI Express."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.peaks.peaks_in_info import peaks_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Bytes per second of a lane and direction, by generation of PCI Express."""
_USABLE = 0.87
"""Share of it that copies of pinned memory reach; packet headers take the rest."""


def link_bytes_per_s(info: Mapping[str, Any], device_id: int, direction: str) -> float | None:
    """Return the bandwidth that copies of pinned memory can reach, bytes per second.

    Parameters
    ----------
    info
        The profile's info.
    device_id
        The device.
    direction
        ``"HtoD"`` or ``"DtoH"``; other directions do not use the link.

    Returns
    -------
    bandwidth
        The bandwidth that ``prof.roofline()`` measured, else the one that the generation and the
        lanes of the device's PCI Express allow; None if both are unknown.

    Examples
    --------
    >>> gpu = {"name": "GPU", "pcie_generation": 5, "pcie_lanes": 16}
    >>> info = {"devices": [{"device_id": 0, "name": "GPU"}], "gpu": {"before": {"gpus": [gpu]}}}
    >>> round(link_bytes_per_s(info, 0, "HtoD") / 1e9, 1)
    54.8
    """
    if direction not in ("HtoD", "DtoH"):
        return None
    peaks = peaks_of(info).get(device_id)
    if peaks is not None and direction in peaks.link_bytes_per_s:
        return peaks.link_bytes_per_s[direction]
    rates = [_LANE.get(generation, 0.0) * lanes for generation, lanes in _links(info, device_id)]
    # If several GPUs have the name of the device, the slowest link counts.
    return _USABLE * min(rates) if rates and min(rates) > 0 else None


def _links(info: Mapping[str, Any], device_id: int) -> Iterator[tuple[int, int]]:
    """Yield generation and lanes of the GPUs that have the name of a device."""
    names = {
        device.get("name")
        for device in _mappings(info.get("devices"))
        if device.get("device_id") == device_id
    }
    states = info.get("gpu")
    state = states.get("before") if isinstance(states, dict) else None
    for gpu in _mappings(state.get("gpus") if isinstance(state, dict) else None):
        generation, lanes = gpu.get("pcie_generation"), gpu.get("pcie_lanes")
        if gpu.get("name") in names and isinstance(generation, int) and isinstance(lanes, int):
            yield generation, lanes


def _mappings(values: object) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if type(values) is list else []
