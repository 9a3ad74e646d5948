"""Kernels and their registry in ONNX Runtime, which sessions share.

Building a registry takes as long as creating a small session. Sessions on the same device share a
registry until a kernel is added, removed or redefined with another declaration. Each session keeps
the registry that it was created with.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.ep import context, cuda, devices
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.ep.known_operators import CHANNELS_LAST
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Hashable

_MAX_SETS = 4

_lock = fork_safe_lock()
_sets: OrderedDict[Hashable, object] = OrderedDict()


def kernels_for(device: str, *, channels_last: bool, use_tf32: bool | None = None) -> object:
    """Return the current kernels for sessions on a device.

    Parameters
    ----------
    device
        Name of the device.
    channels_last
        Whether ONNX Runtime may move channels to the last axis.
    use_tf32
        Whether products of float32 round their elements to TF32; None if the process decides.

    Returns
    -------
    kernels
        The result of ``_native.ep_make_kernels``; the same object while the kernels stay the same.
    """
    kernels = REGISTRY.kernels()
    if device == devices.HOST:
        use_tf32 = None
    key = (device, channels_last, use_tf32, kernels)
    with _lock:
        found = _sets.get(key)
        if found is None:
            specs, index = [], devices.cuda_index(device)
            for kernel in kernels:
                d = kernel.declaration
                if d.domain == CHANNELS_LAST and not channels_last:
                    continue
                on_device = context.OnDevice(kernel, device, use_tf32)
                given = kernel if device == devices.HOST else on_device
                memory, limited = (d.host_inputs, d.host_outputs), bool(kernel.limits)
                specs += [
                    (
                        d.op_type, d.domain, first, last, _of_device(numbers, index), *memory,
                        limited, d.is_view, given,
                    )
                    for first, last, numbers in d.numbered_ranges
                ]  # fmt: skip
            found = _native.ep_make_kernels(-1 if index is None else index, tuple(specs))
            _sets[key] = found
        _sets.move_to_end(key)
        while len(_sets) > _MAX_SETS:
            _sets.popitem(last=False)
    return found


def _of_device(
    numbers: dict[str, tuple[int, ...]], index: int | None
) -> dict[str, tuple[int, ...]]:
    """Return the element types that a device's arrays can have, by type constraint."""
    if index is None:
        return numbers
    return {name: tuple(filter(cuda.has_dtype, allowed)) for name, allowed in numbers.items()}
