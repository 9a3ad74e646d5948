"""Nodes as kernels see them, and the functions that the native core calls."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.core.python_kernel_log import KERNELS, Replay
from epprof_nb.ep import cuda, cuda_capture_checks, kernel_limits, types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from epprof_nb.ep.kernel import Kernel


_interrupted = threading.Event()


def take_interrupt() -> bool:
    """Whether Ctrl-C has interrupted a kernel since the last call."""
    interrupted = _interrupted.is_set()
    _interrupted.clear()
    return interrupted


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Node:
    """A node of a session with a kernel in Python; `ctx` has the same attributes."""

    kernel: Kernel
    name: str
    attrs: Mapping[str, Any]
    num_outputs: int
    op_type: str
    domain: str
    device: str = "host"
    xp: Any = np
    use_tf32: bool | None = None


@dataclass(frozen=True, slots=True)
class OnDevice:
    """A kernel in a session on a CUDA device."""

    kernel: Kernel
    device: str
    use_tf32: bool | None


def limit_of(
    given: Kernel | OnDevice, attributes: dict[str, Any], inputs: tuple[bool, ...]
) -> str | None:
    """Return why a kernel leaves a node to other providers; None if it takes the node."""
    kernel = given.kernel if isinstance(given, OnDevice) else given
    return kernel_limits.limit_of(kernel.limits, kernel_limits.StaticNode(attributes, inputs))


def make_node(
    given: Kernel | OnDevice, name: str, attributes: dict[str, Any], num_outputs: int
) -> tuple[list[Callable[..., None]], Node, bool]:
    """Return the cell with the function of a node, the node, and whether shapes are checked."""
    if isinstance(given, OnDevice):
        kernel, device, module = given.kernel, given.device, cuda.array_module()
        use_tf32 = given.use_tf32
    else:
        kernel, device, module, use_tf32 = given, "host", np, None
    declared = kernel.declaration
    node = Node(
        kernel,
        name,
        MappingProxyType(attributes),
        num_outputs,
        declared.op_type,
        declared.domain,
        device,
        module,
        use_tf32,
    )
    kernel.nodes.add(node)
    return kernel.cell, node, kernel.checks_shapes


def describe_error(node: Node | None, error: BaseException) -> str:
    """Return the message that ONNX Runtime reports for an exception.

    Parameters
    ----------
    node
        The node whose kernel raised it; None if the session could not be created.
    error
        The exception.
    """
    if node is None:
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        _interrupted.set()
    if node.device != "host" and _native.ep_is_capturing():
        cuda_capture_checks.report(error)
    where = f"node {node.name!r} ({node.op_type})" if node.name else f"a {node.op_type} node"
    what = "".join(traceback.format_exception_only(error)).strip()
    message = f"The kernel of {where} failed: {what}"
    if error.__traceback__ is not None:
        message += "\n" + "".join(traceback.format_exception(error)).rstrip()
        traceback.clear_frames(error.__traceback__)  # frames refer to arrays that end with the call
    return message


def record(node: Node, start_ns: int, end_ns: int, replay: Replay | None) -> None:
    """Record that the kernel of a node ran, on this thread or in the replay of a graph."""
    KERNELS.add(node.kernel.name, start_ns, end_ns, replay=replay)


def record_copy(start_ns: int, end_ns: int, nbytes: int, to_device: int) -> None:
    """Record a copy between host and device on this thread."""
    kind = "HtoD" if to_device else "DtoH"
    KERNELS.add(f"memcpy {kind}", start_ns, end_ns, copy_kind=kind, nbytes=nbytes)


def begin_replay(graph: tuple[Any, ...]) -> int:
    """Note the graph that this thread replays; return the number of its stream."""
    return KERNELS.begin_replay(graph)


def end_replay(replay: Replay, start_ns: int, end_ns: int) -> None:
    """Record the replay of a graph as a whole."""
    KERNELS.add_replay(replay, start_ns, end_ns)


def connect(
    open_session: Callable[[dict[str, str], int], tuple[Any, ...]],
    release_graphs: Callable[[int, int], None],
    list_domains: Callable[[], tuple[object, ...]],
) -> None:
    """Give the native core the functions that it calls, and the dtypes that NumPy lacks."""
    for number, dtype in types.small_float_dtypes().items():
        _native.ep_add_dtype(number, dtype.num)
    _native.ep_set_functions(
        open_session, limit_of, make_node, describe_error, record, record_copy, begin_replay,
        end_replay, release_graphs, list_domains,
    )  # fmt: skip
