"""Registration of the provider's library with ONNX Runtime, and the device of a provider's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.added_providers import added_to
from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import PROVIDER, is_of_this_library, register_library
from epprof_nb.ep import cuda, devices, provider_options

if TYPE_CHECKING:
    from collections.abc import Sequence

_PURPOSE = "the provider of Python kernels"


def get_library_path() -> str:
    """Return the path of the library for ``onnxruntime.register_execution_provider_library``.

    Examples
    --------
    >>> import onnxruntime
    >>> from epprof_nb import ep
    >>> onnxruntime.register_execution_provider_library("any name", ep.get_library_path())
    >>> names = [device.ep_name for device in onnxruntime.get_ep_devices()]
    >>> ep.get_ep_name() in names
    True
    >>> onnxruntime.unregister_execution_provider_library("any name")
    """
    return str(_native.__file__)


def get_ep_name() -> str:
    """Return the name of the execution provider, the ``ep_name`` of its devices."""
    return PROVIDER


def get_ep_names() -> list[str]:
    """Return the names of the execution providers of this package that run nodes."""
    return [PROVIDER]


def register(index: int | None) -> None:
    """Register the provider for a CUDA device, or for the host device, unless it is registered.

    A program may have registered the library by hand under any name, or have unregistered it.
    """
    # The host device comes first: without device_id, ONNX Runtime takes the first device.
    _native.ep_register_host_only(True)  # noqa: FBT003
    try:
        register_library(PROVIDER, _PURPOSE, _is_host)
    finally:
        _native.ep_register_host_only(False)  # noqa: FBT003
    if index is not None:
        register_library(cuda.LIBRARY, f"{_PURPOSE} on CUDA devices", _is_cuda)


def _is_host(device: Any) -> bool:  # noqa: ANN401
    return bool(device.ep_name == PROVIDER and device.ep_metadata["device"] == devices.HOST)


def _is_cuda(device: Any) -> bool:  # noqa: ANN401
    return bool(device.ep_name == PROVIDER and device.ep_metadata["device"] != devices.HOST)


def _registered() -> list[Any]:
    """Return the devices that have our name."""
    from onnxruntime.capi import _pybind_state

    return [device for device in _pybind_state.get_ep_devices() if device.ep_name == PROVIDER]


def check_named() -> None:
    """Raise KernelError if ONNX Runtime does not know our name: the library was unregistered.

    ONNX Runtime would print an error and run on the CPU.
    """
    if not _registered():
        raise KernelError(
            f"{PROVIDER} is not registered, because its library was unregistered. Call "
            "epprof_nb.ep.provider() again, or register the file that "
            "epprof_nb.ep.get_library_path() returns."
        )


def check_registered(session_options: Any) -> None:  # noqa: ANN401
    """Raise KernelError if the library of a device in the options was unregistered.

    ONNX Runtime would crash, because it has freed the device.
    """
    added = added_to(session_options) if session_options is not None else None
    if added is None or all(name != PROVIDER for name, _ in added.providers):
        return
    if not _registered():
        raise KernelError(
            f"These SessionOptions hold a device of {PROVIDER}, whose library was unregistered "
            "since. Register it again, and create new SessionOptions with a device of "
            "onnxruntime.get_ep_devices()."
        )


def check_library() -> None:
    """Raise KernelError if our name belongs to another copy of the library.

    ONNX Runtime takes the device that was registered first.
    """
    first = next(iter(_registered()), None)
    if first is not None and not is_of_this_library(first):
        raise KernelError(
            f"{PROVIDER} is a device of {first.ep_metadata['library_path']}, which is not the "
            f"library of the Python package epprof_nb in this process, {_native.__file__}. "
            "Unregister it with onnxruntime.unregister_execution_provider_library."
        )


def with_device(
    providers: Sequence[Any] | None, options: Sequence[Any] | None
) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
    """Return a provider list and its options in which our entry names its device.

    Users of the CUDA provider choose a device by ``device_id`` alone, or by none of its options:
    then it is device 0. Without an NVIDIA driver, device 0 is the host device.

    Raises
    ------
    KernelError
        If an option of our provider is unknown or its value is wrong, or the device is missing.
    """
    if not any(_name(p) == PROVIDER for p in providers or ()):
        return providers, options
    entries = list(providers or ())
    listed = list(options) if options else [{} for _ in entries]
    for i, entry in enumerate(entries):
        if _name(entry) != PROVIDER or i >= len(listed):
            continue
        given = dict(entry[1] if isinstance(entry, tuple) and entry[1:] else listed[i])
        chosen = _with_device(given)
        if chosen != given:
            entries[i] = (PROVIDER, chosen) if isinstance(entry, tuple) else entry
            listed[i] = listed[i] if isinstance(entry, tuple) else chosen
    return entries, listed if options else None


def _name(entry: Any) -> object:  # noqa: ANN401
    return entry[0] if isinstance(entry, tuple) else entry


def _with_device(given: dict[str, Any]) -> dict[str, Any]:
    named = provider_options.canonical(given)
    default = "0" if provider_options.are_for_cuda(given) else None
    number = named.get("device_id", default)
    if "device" in named or number is None:
        return given
    others = {k: v for k, v in given.items() if k.removeprefix("ep.cuda.") != "device_id"}
    if not number.isdecimal():
        raise KernelError(f"device_id={number!r} is not the number of a device.")
    try:
        count = cuda.open_driver()
    except KernelError as error:
        if int(number) == 0:
            return others
        raise KernelError(f"device_id={number} does not exist: {error}") from error
    if int(number) >= count:
        raise KernelError(
            f"device_id={number} does not exist. The CUDA devices of this machine are 0 to "
            f"{count - 1}."
        )
    register(int(number))
    return {**others, **devices.options_of(f"cuda:{number}", None)}
