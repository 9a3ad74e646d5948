"""Collectives on the host, such as gloo's: calls of process groups, and waits for them, as ops.

Collectives on GPUs are kernels, and need no ops. Calls that PyTorch makes in C++, such as in
DistributedDataParallel, do not pass here; see `epprof_nb.recording.torch.collectives_from_cpp`.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from epprof_nb import _native
from epprof_nb.analysis.ranks import collective_kinds
from epprof_nb.recording.frameworks.framework_ops import CALL, kind_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.recording.frameworks.patches import Patches

_CALLS = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce", 0),
    "allgather": ("all_gather", 1),
    "allgather_coalesced": ("all_gather", 1),
    "_allgather_base": ("all_gather", 1),
    "all_gather_single": ("all_gather", 1),
    "allgather_into_tensor_coalesced": ("all_gather", 1),
    "reduce_scatter": ("reduce_scatter", 0),
    "_reduce_scatter_base": ("reduce_scatter", 0),
    "reduce_scatter_single": ("reduce_scatter", 0),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter", 0),
    "alltoall": ("all_to_all", 1),
    "alltoall_base": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 1),
    "barrier": ("barrier", None),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "gather": ("gather", 1),
    "scatter": ("scatter", 0),
    "send": ("send", 0),
    "recv": ("receive", 0),
    "recv_anysource": ("receive", 0),
}
"""Method of ``ProcessGroup`` to the kind, and the argument with what a rank contributes."""
_POINT_TO_POINT = ("send", "receive")
_ON_HOST = ("gloo", "mpi")
"""Backends whose barriers are on the host."""

_numbers = count()


def replace_process_groups(patches: Patches, is_off: Callable[[], bool]) -> None:
    """Replace the methods of process groups, if this build of PyTorch has any."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return
    group, work = distributed.ProcessGroup, sys.modules["torch._C._distributed_c10d"].Work
    pending: WeakKeyDictionary[Any, tuple[int, int]] = WeakKeyDictionary()
    for method in _CALLS:
        if hasattr(group, method):
            recorded = partial(_call, method=method, pending=pending, is_off=is_off)
            patches.replace(group, method, recorded)
    patches.replace(work, "wait", lambda original: _wait(original, pending, is_off))


def _call(
    original: Callable[..., Any],
    method: str,
    pending: WeakKeyDictionary[Any, tuple[int, int]],
    is_off: Callable[[], bool],
) -> Callable[..., Any]:
    kind, contributed = _CALLS[method]
    name, wait_name = _native.intern(kind), _native.intern(f"wait for {kind}")

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - ProcessGroup
        if is_off() or not _is_on_host(self, args):
            return original(self, *args, **kwargs)
        facts: dict[str, object] = {"communicator": self.group_name, "ranks": self.size()}
        if contributed is not None and contributed < len(args):
            facts["bytes"] = sum(
                tensor.numel() * tensor.element_size() for tensor in _tensors(args[contributed])
            )
        facts["number"] = (
            next(_numbers) if kind in _POINT_TO_POINT else self._get_sequence_number_for_group() + 1
        )
        op_id = _native.push(name, CALL, kind_id(collective_kinds.CALL, "torch", **facts))
        try:
            work = original(self, *args, **kwargs)
        finally:
            _native.pop(op_id)
        if work is not None:
            pending[work] = wait_name, kind_id(collective_kinds.WAIT, "torch", **facts)
        return work

    return call


def _wait(
    original: Callable[..., Any],
    pending: WeakKeyDictionary[Any, tuple[int, int]],
    is_off: Callable[[], bool],
) -> Callable[..., Any]:
    def wait(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Work
        known = pending.pop(self, None)
        # The end of work that has completed before is not known.
        if known is None or is_off() or self.is_completed():
            return original(self, *args, **kwargs)
        op_id = _native.push(known[0], CALL, known[1])
        try:
            return original(self, *args, **kwargs)
        finally:
            _native.pop(op_id)

    return wait


def _is_on_host(group: Any, args: tuple[Any, ...]) -> bool:  # noqa: ANN401 - ProcessGroup
    for value in args:
        for tensor in _tensors(value):
            return bool(tensor.device.type == "cpu")
    return group.name() in _ON_HOST


def _tensors(value: object) -> Iterator[Any]:
    """Yield the tensors of an argument: a tensor, or lists of them."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, sys.modules["torch"].Tensor):
        yield value
