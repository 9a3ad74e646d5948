"""Arrays that kernels compute on the host, in the memory of a CUDA device.

A stream capture does not allow copies from host memory, so copies of earlier runs are kept. They
stay until the process ends, because graphs may read them. Beyond a bound, no copies are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule

MAX_BYTES = 64 << 20

_lock = fork_safe_lock()
_kept: dict[tuple[Any, ...], Array] = {}
_kept_bytes = 0


def constant(xp: ArrayModule, values: Any, dtype: Any = None) -> Array:  # noqa: ANN401
    """Return values that do not depend on the inputs of a node, as an array of `xp`.

    Parameters
    ----------
    xp
        Array module.
    values
        A NumPy array, or a value that NumPy converts to one. The result must not be written.
    dtype
        Dtype of the result; by default the dtype of `values`.
    """
    host = np.asarray(values, dtype)
    if xp is np:
        return host
    key = (xp.cuda.runtime.getDevice(), host.dtype.str, host.shape, host.tobytes())
    found = _kept.get(key)
    if found is not None:
        return found
    made = xp.asarray(host)
    if not _native.ep_is_capturing() and _reserve(host.nbytes):
        made.get()  # waits for the copy, because streams of other runs may read it
        _kept[key] = made
    return made


def _reserve(nbytes: int) -> bool:
    global _kept_bytes  # noqa: PLW0603 - process-wide state
    with _lock:
        if _kept_bytes + nbytes > MAX_BYTES:
            return False
        _kept_bytes += nbytes
        return True
