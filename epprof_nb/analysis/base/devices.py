"""The devices of a profile, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def device_names(info: Mapping[str, Any]) -> dict[int, str]:
    """Return device id to device name from a profile's info; entries without an id are skipped.

    Examples
    --------
    >>> device_names({"devices": [{"device_id": 0, "name": "NVIDIA H200"}, {"device_id": 1}]})
    {0: 'NVIDIA H200', 1: 'device 1'}
    """
    devices = info.get("devices")
    return {
        device["device_id"]: str(device.get("name") or f"device {device['device_id']}")
        for device in (devices if isinstance(devices, list | tuple) else ())
        if isinstance(device, dict) and isinstance(device.get("device_id"), int)
    }


def device_name(info: Mapping[str, Any], device_id: int) -> str:
    """Return the name of a device; ``device 0`` if the profile does not know it."""
    return device_names(info).get(device_id, f"device {device_id}")


def device_labels(info: Mapping[str, Any], device_ids: Iterable[int]) -> dict[int, str]:
    """Return device id to short label; the id of the host device is not an ordinal.

    Examples
    --------
    >>> info = {"devices": [{"device_id": 0, "kind": "cuda"}, {"device_id": 1000, "kind": "host"}]}
    >>> device_labels(info, [0, 1000])
    {0: 'GPU 0', 1000: 'host device'}
    """
    devices = info.get("devices")
    kinds = {
        device.get("device_id"): device.get("kind")
        for device in (devices if isinstance(devices, list | tuple) else ())
        if isinstance(device, dict) and isinstance(device.get("device_id"), int)
    }
    word = "GPU" if "cuda" in kinds.values() else "device"
    return {
        device_id: "host device" if kinds.get(device_id) == "host" else f"{word} {device_id}"
        for device_id in device_ids
    }


def device_word(info: dict[str, Any]) -> str:
    """Return ``GPU`` if the devices are GPUs, else ``device``: the host device is no GPU.

    Beside GPUs, the host device is listed only if it was used.
    """
    kinds = {d.get("kind") for d in info.get("devices") or () if isinstance(d, dict)}
    return "GPU" if "cuda" in kinds and "host" not in kinds else "device"
