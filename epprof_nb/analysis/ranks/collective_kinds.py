"""Kinds of collectives, by the names of kernels, of ranges and of calls."""

from __future__ import annotations

import re

WAIT_FOR_ALL = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Kinds in which no rank can end before all have arrived."""

CALL, WAIT = "collective", "collective_wait"
"""Types of the ops of calls that communicate on the host, and of waits for them."""

_KINDS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "allgatherv": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
    "sendrecv": "send_receive",
    "send": "send",
    "recv": "receive",
    "receive": "receive",
}
KINDS = frozenset(_KINDS.values())
"""All kinds that names of calls may have."""
_WORD = "|".join(sorted(_KINDS, key=len, reverse=True))
# ncclDevKernel_AllReduce_Sum_f32_RING_LL; ncclKernel_AllReduce_RING_LL_Sum_float;
# ncclSymkDevKernel_AllReduce_...; ncclAllReduceRingLLKernel_sum_f32
_KERNEL = re.compile(rf"(?:nccl|mscclpp|msccl)\w*?(?:Kernel_?)?({_WORD})", re.IGNORECASE)
_GENERIC = re.compile(r"(?:nccl\w*Kernel\w*|msccl\w*Kernel\w*)", re.IGNORECASE)

UNKNOWN = "unknown"
"""Kind of a kernel of a collective whose name does not say it, as ``ncclDevKernel_Generic``."""


def kind_of_kernel(name: str) -> str | None:
    """Return the kind of a kernel of NCCL or RCCL; None for any other kernel.

    Examples
    --------
    >>> kind_of_kernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgs4K)")
    'reduce_scatter'
    >>> kind_of_kernel("ncclDevKernel_SendRecv"), kind_of_kernel("ncclDevKernel_Generic_4")
    ('send_receive', 'unknown')
    >>> kind_of_kernel("sgemm_all_reduce")  # another kernel
    """
    base = name.removeprefix("void ").partition("(")[0].partition("<")[0]
    if not _GENERIC.match(base):
        return None
    found = _KERNEL.match(base)
    return _KINDS[found[1].lower()] if found else UNKNOWN


def kind_of_call(name: str) -> str:
    """Return the kind of a call or range of that name.

    Examples
    --------
    >>> kind_of_call("ncclAllReduce"), kind_of_call("all_gather_into_tensor"), kind_of_call("mine")
    ('all_reduce', 'all_gather', 'mine')
    """
    plain = name.lower().removeprefix("gloo:").removeprefix("nccl").replace("_", "")
    return next((_KINDS[word] for word in _SORTED if plain.startswith(word)), name)


_SORTED = sorted(_KINDS, key=len, reverse=True)
