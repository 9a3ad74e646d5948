"""The origin of a profile: its code, device, driver, versions and date."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.devices import device_name
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.data.profile_data import ProfileData

_VERSIONS = {
    "cupti": "CUPTI", "torch": "PyTorch", "jax": "JAX", "cupy": "CuPy",
    "onnxruntime": "ONNX Runtime", "python": "Python", "epprof_nb": "epprof_nb",
}  # fmt: skip
_MAX_LENGTH = 80
_MAX_DEVICES = 8
_LATEST_NS = 253_402_300_799 * 10**9
"""The end of the year 9999, the last one that `datetime` supports."""


def title_of(profile: ProfileData) -> str:
    """Return a title: the cells or the script, the devices and the day.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> title_of(synthetic_profile(activities=10)).split(" · ")[:2]
    ['In[3]', 'synthetic device']
    """
    info = profile.info
    # The sources of a script include other files, with functions of its ops.
    script = info.get("script")
    code = script or ", ".join(profile.sources) or info.get("cell") or "Profile"
    parts = [str(code), *_devices(info), _date(info)[:10]]
    return " · ".join(shorten(part, _MAX_LENGTH) for part in parts if part)


def made_on(info: Mapping[str, Any]) -> str:
    """Return the devices, the driver, the versions and the date in one line.

    Parts that the info of the profile lacks are left out.

    Examples
    --------
    >>> made_on({"devices": [{"device_id": 0, "name": "NVIDIA H200"}],
    ...          "gpu": {"before": {"driver_version": "570.86"}}, "versions": {"python": "3.12.4"}})
    'NVIDIA H200 · driver 570.86 · Python 3.12.4'
    """
    before = _mapping(_mapping(info.get("gpu")).get("before"))
    driver, versions = before.get("driver_version"), _mapping(info.get("versions"))
    parts = [
        *_devices(info),
        f"driver {driver}" if driver else "",
        *(f"{name} {versions[key]}" for key, name in _VERSIONS.items() if versions.get(key)),
        _date(info),
    ]
    return " · ".join(shorten(part, _MAX_LENGTH) for part in parts if part)


def _mapping(value: object) -> Mapping[str, Any]:
    # A file may contain anything.
    return value if isinstance(value, dict) else {}


def _devices(info: Mapping[str, Any]) -> list[str]:
    """Return the names of the devices, equal ones as ``4 x NVIDIA H200``."""
    devices = info.get("devices")
    ids = [
        device["device_id"]
        for device in (devices if isinstance(devices, list | tuple) else ())
        if isinstance(device, dict) and isinstance(device.get("device_id"), int)
    ]
    names = [device_name(info, device_id) for device_id in ids]
    if not any(_mapping(_mapping(info.get("recorded")).get("shown")).values()):
        # Nothing ran on the host device: it is listed for its processor.
        names = [re.sub(r"^host device \((.+)\)$", r"\1", name) for name in names]
    counts = {name: names.count(name) for name in dict.fromkeys(names[:_MAX_DEVICES])}
    return [
        f"{count} \N{MULTIPLICATION SIGN} {name}" if count > 1 else name
        for name, count in counts.items()
    ]


def _date(info: Mapping[str, Any]) -> str:
    started = info.get("started_at_epoch_ns")
    if not isinstance(started, int) or not 0 < started < _LATEST_NS:
        return ""
    return f"{datetime.fromtimestamp(started / 1e9, UTC):%Y-%m-%d %H:%M} UTC"
