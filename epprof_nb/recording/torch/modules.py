"""Ops of PyTorch modules: each call of ``torch.nn.Module`` is an op named after its path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.recording.torch.module_paths import ModulePaths


def recorded_call(original: Callable[..., Any], paths: ModulePaths) -> _native.RecordedModule:
    """Wrap ``torch.nn.Module.__call__``."""
    import torch

    is_known = _native.engine_is_known()
    recorded = _native.RecordedModule(
        original,
        paths.known,
        paths.find,
        vars(torch.compiler),
        torch.compiler.is_compiling,
        # There are no public names.
        None if is_known else torch.autograd._get_sequence_nr,  # noqa: SLF001
        None if is_known else torch._C._current_graph_task_id,  # noqa: SLF001
    )
    recorded.__wrapped__ = original  # for `inspect.signature`
    return recorded
