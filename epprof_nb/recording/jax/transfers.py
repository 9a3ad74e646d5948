"""Ops of the functions of JAX that wait for the device, or copy to or from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from epprof_nb.recording.frameworks.patches import recorded_function

if TYPE_CHECKING:
    from epprof_nb.recording.frameworks.patches import Patches, Switch


def record_transfers(patches: Patches, switch: Switch) -> None:
    """Replace the functions that wait and copy, except any that this release lacks."""
    from jax._src import dispatch
    from jax._src.lib import xla_client

    def is_off() -> bool:
        return not switch.on

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
            record = partial(
                recorded_function, name=op_name, op_type=op_type, source="jax", is_off=is_off
            )
            patches.replace(owner, name, record)
