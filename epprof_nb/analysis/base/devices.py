"""The devices of a profile, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from epprof_nb.analysis.base.index import ProfileIndex


def device_names(info: Mapping[str, Any]) -> dict[int, str]:
    """Map device ids to names from a profile's info; entries without an id are skipped.

    Examples
    --------
    >>> device_names({"devices": [{"device_id": 0, "name": "NVIDIA H200"}, {"device_id": 1}]})
    {0: 'NVIDIA H200', 1: 'device 1'}
    """
    return {
        device["device_id"]: str(device.get("name") or f"device {device['device_id']}")
        for device in _devices(info)
    }


def is_gpu(device: Mapping[str, Any]) -> bool:
    """Return whether an entry of ``info["devices"]`` is a GPU, of any vendor.

    Profiles that an older version pickled have the kind ``cuda``.

    Examples
    --------
    >>> is_gpu({"device_id": 0, "kind": "gpu"}), is_gpu({"device_id": 1000, "kind": "host"})
    (True, False)
    """
    return device.get("kind") in ("gpu", "cuda")


def gpu_ids(info: Mapping[str, Any]) -> set[int]:
    """Return the ids of the GPUs of a profile.

    Examples
    --------
    >>> gpu_ids({"devices": [{"device_id": 0, "kind": "gpu"}, {"device_id": 1000, "kind": "host"}]})
    {0}
    """
    return {device["device_id"] for device in _devices(info) if is_gpu(device)}


def host_ids(info: Mapping[str, Any]) -> set[int]:
    """Return the ids of the host devices of a profile.

    Examples
    --------
    >>> host_ids({"devices": [{"device_id": 1000, "kind": "host"}]})
    {1000}
    """
    return {device["device_id"] for device in _devices(info) if device.get("kind") == "host"}


def used_gpu(index: ProfileIndex) -> bool:
    """Return whether a GPU of the profile has activities."""
    return not gpu_ids(index.profile.info).isdisjoint(index.device_ids)


def _devices(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    devices = info.get("devices")
    return [
        device
        for device in (devices if isinstance(devices, list | tuple) else ())
        if isinstance(device, dict) and isinstance(device.get("device_id"), int)
    ]


def device_name(info: Mapping[str, Any], device_id: int) -> str:
    """Return the name of a device; ``device 0`` if the profile does not know it."""
    return device_names(info).get(device_id, f"device {device_id}")


def device_labels(info: Mapping[str, Any], device_ids: Iterable[int]) -> dict[int, str]:
    """Map device ids to short labels; the id of the host device is not an ordinal.

    In a window of a job, a device has a label of its own, such as ``rank 3, GPU 0``.

    Examples
    --------
    >>> info = {"devices": [{"device_id": 0, "kind": "gpu"}, {"device_id": 1000, "kind": "host"}]}
    >>> device_labels(info, [0, 1000])
    {0: 'GPU 0', 1000: 'host device'}
    """
    given = {device["device_id"]: device.get("label") for device in _devices(info)}
    word = "GPU" if gpu_ids(info) else "device"
    hosts = {device["device_id"] for device in _devices(info) if device.get("kind") == "host"}
    return {
        device_id: str(
            given.get(device_id) or ("host device" if device_id in hosts else f"{word} {device_id}")
        )
        for device_id in device_ids
    }


def device_word(info: dict[str, Any]) -> str:
    """Return ``GPU`` if the devices are GPUs, else ``device``.

    Beside GPUs, the host device is listed only if it was used.
    """
    devices = _devices(info)
    has_host = any(device.get("kind") == "host" for device in devices)
    return "GPU" if any(map(is_gpu, devices)) and not has_host else "device"


_NAMED = 3


def devices_phrase(index: ProfileIndex, device_ids: Iterable[int]) -> str:
    """Return some devices for a sentence: ``GPU``, or their names if several devices worked.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> devices_phrase(ProfileIndex(synthetic_profile(activities=100)), [0])
    'GPU'
    """
    worked = [device for device in index.device_ids if device >= 0]
    ids = sorted(set(device_ids) & set(worked))
    if len(worked) < 2 or not ids:
        return device_word(index.profile.info)
    if len(ids) > _NAMED:
        return f"{len(ids)} devices"
    labels = device_labels(index.profile.info, ids)
    names = [labels[device] for device in ids]
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
