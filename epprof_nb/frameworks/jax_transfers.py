"""Ops of the functions of JAX that wait for the device, or copy to or from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.frameworks.framework_ops import CALL, kind_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.frameworks.patches import Patches, Switch


def record_transfers(patches: Patches, switch: Switch) -> None:
    """Replace the functions that wait and copy; those that this release lacks are left out."""
    from jax._src import dispatch
    from jax._src.lib import xla_client

    for owner, name, op_name, op_type in (
        (xla_client.ArrayImpl, "block_until_ready", "block_until_ready", "wait"),
        (xla_client, "batched_block_until_ready", "block_until_ready", "wait"),
        (dispatch, "_batched_device_put_impl", "device_put", "transfer"),
        # Behind np.asarray(array), float(array), array.item() and print(array). The name is JAX's.
        (
            xla_client.ArrayImpl,
            "_single_device_array_to_np_array_did_copy",
            "np.asarray(jax.Array)",
            "transfer",
        ),
    ):
        if hasattr(owner, name):
            patches.replace(owner, name, _Recorded(op_name, op_type, switch))


class _Recorded:
    """Wraps a function so that its calls are ops."""

    def __init__(self, name: str, op_type: str, switch: Switch) -> None:
        self._name = _native.intern(name)
        self._kind = kind_id(op_type, "jax")
        self._switch = switch

    def __call__(self, original: Callable[..., Any]) -> Callable[..., Any]:
        name, kind, switch = self._name, self._kind, self._switch

        def recorded(*args: Any, **kwargs: Any) -> object:
            if not switch.on:
                return original(*args, **kwargs)
            op_id = _native.push(name, CALL, kind)
            try:
                return original(*args, **kwargs)
            finally:
                _native.pop(op_id)

        return recorded
