"""Creation of sessions, with the reasons why a session cannot capture graphs."""

from __future__ import annotations

import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_releases import FIRST_WITH_GRAPHS
from epprof_nb.ep import unclaimed
from epprof_nb.ep.graphs.session_graphs import ATTRIBUTE, SessionGraphs
from epprof_nb.ep.user_code import user_level

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Opened(threading.local):
    """The session that this thread creates, once it contains our provider."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.warm_ups: int | None = None
        self.cuda_device: int | None = None
        self.selected = False
        self.refused: KernelError | None = None


_opened = _Opened()


def note_opened(
    number: int, warm_ups: int | None, cuda_device: int | None, *, selected: bool
) -> None:
    """Note the session that is being created.

    Parameters
    ----------
    number, cuda_device
        The numbers of the session and of its CUDA device.
    warm_ups
        Number of eager runs before a capture; None if the session does not capture graphs.
    selected
        Whether it takes selected nodes only.
    """
    _opened.number, _opened.warm_ups, _opened.cuda_device = number, warm_ups, cuda_device
    _opened.selected = selected


def note_refused(error: KernelError) -> None:
    """Note why the session that is being created was refused."""
    _opened.refused = error


def number_of_last() -> int | None:
    """Return the number of the session that this thread created last; None if not ours."""
    return _opened.number


@contextmanager
def creating(session: Any) -> Iterator[None]:  # noqa: ANN401
    """Let a session that is created in the ``with`` block capture graphs, if requested.

    Raises
    ------
    KernelError
        If ONNX Runtime refuses because no kernel takes some nodes, or if a node that ``nodes=``
        selects does not exist.
    """
    _opened.number = _opened.warm_ups = _opened.refused = None
    setattr(session, ATTRIBUTE, None)
    _native.ep_allow_capture(True)  # noqa: FBT003
    try:
        yield
    except Exception as error:
        if _opened.refused is not None:
            session.disable_fallback()  # ONNX Runtime would print the error and run on the CPU
            raise KernelError(str(_opened.refused)) from error
        of_ours = _opened.number is not None
        nodes = unclaimed.of_last_session() if of_ours else list[unclaimed.Unclaimed]()
        if _opened.warm_ups is not None and nodes and "graph capture" in str(error).lower():
            raise KernelError(
                unclaimed.needs_all_nodes(nodes, selected=_opened.selected)
            ) from error
        if note := unclaimed.note(nodes):
            error.add_note(note)
        raise
    finally:
        _native.ep_allow_capture(False)  # noqa: FBT003
    if _opened.number is not None:
        _check_selection(session)
    if _opened.number is None or _opened.warm_ups is None:
        return
    if not _is_supported():
        warnings.warn(
            "This release of ONNX Runtime does not capture graphs of this provider; 1.26 is the "
            "first that does. The session runs eagerly.",
            stacklevel=user_level(),
        )
        return
    if _uses_pool_threads(session):
        warnings.warn(
            "Graphs are captured on the thread of a run, and this session runs its nodes on "
            "threads of a pool (ExecutionMode.ORT_PARALLEL). It runs eagerly.",
            stacklevel=user_level(),
        )
        return
    if _native.ep_has_control_flow():
        warnings.warn(
            "ONNX Runtime captures no graph of a model with If, Loop or Scan. The session runs "
            "eagerly.",
            stacklevel=user_level(),
        )
        return
    graphs = SessionGraphs(_opened.number, _opened.warm_ups, _opened.cuda_device)
    setattr(session, ATTRIBUTE, graphs)


def _check_selection(session: Any) -> None:  # noqa: ANN401
    """Refuse missing names of ``nodes=``; warn about missing types of ``only=``."""
    types, nodes = unclaimed.unmatched()
    if message := unclaimed.misspelt(nodes, [node.name for node in unclaimed.of_last_session()]):
        session.disable_fallback()  # ONNX Runtime would print the error and run on the CPU
        raise KernelError(message)
    if message := unclaimed.without_nodes(types):
        warnings.warn(message, stacklevel=user_level())


def _uses_pool_threads(session: Any) -> bool:  # noqa: ANN401
    import onnxruntime

    options = session.get_session_options()
    parallel = onnxruntime.ExecutionMode.ORT_PARALLEL
    return options is not None and options.execution_mode == parallel


def _is_supported() -> bool:
    major, minor = _native.ort_runtime().split(".")[:2]
    return (int(major), int(minor)) >= FIRST_WITH_GRAPHS
