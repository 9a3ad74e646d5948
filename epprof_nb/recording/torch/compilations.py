"""Ops of compilations by ``torch.compile``, with the reason of a recompilation.

While TorchDynamo compiles, the original functions of torch are restored. It guards on them, so code
that was compiled with replaced functions would be compiled again after the recording.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import CALL, new_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.recording.frameworks.framework_ops import OpKind
    from epprof_nb.recording.frameworks.patches import Patches, Switch

NAME = "torch.compile"
_DYNAMO = "DYNAMO"
"""Trigger of a compilation by TorchDynamo."""
_CAPTURE = "CUDAGRAPH_RECORDING"
"""Trigger of the capture of a CUDA graph by ``mode="reduce-overhead"``."""


def _compile_id() -> object:
    return sys.modules["torch._guards"].CompileContext.current_compile_id()


class Compilations:
    """The compilations of a recording.

    Parameters
    ----------
    patches
        The functions to restore while torch compiles.
    switch
        Whether compilations are recorded.
    """

    def __init__(self, patches: Patches, switch: Switch) -> None:
        self._patches = patches
        self._switch = switch
        self._name = _native.intern(NAME)
        self._running = 0
        self._kinds: list[tuple[str, str, OpKind]] = []

    def recorded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the context manager that torch enters around each compilation."""

        @contextmanager
        def install_callbacks(handler: Any, *args: Any, **kwargs: Any) -> Iterator[None]:  # noqa: ANN401
            with original(handler, *args, **kwargs):
                # Releases before 2.7 do not report the trigger, and capture graphs elsewhere.
                trigger = str(getattr(args[0], "name", _DYNAMO)) if args else _DYNAMO
                # A graph is captured after the compilation, and its kernels belong to the module.
                if not self._switch.on or trigger == _CAPTURE:
                    yield
                    return
                kind_id, kind = new_kind("compile", "torch")
                self._kinds.append((str(args[1] if args[1:] else _compile_id()), trigger, kind))
                op_id = _native.push(self._name, CALL, kind_id)
                self._running += 1
                self._patches.suspend()
                _native.operators_pause(True)  # noqa: FBT003 - positional only
                try:
                    yield
                finally:
                    self._running -= 1
                    if not self._running:
                        _native.operators_pause(False)  # noqa: FBT003 - positional only
                        if self._switch.on:
                            self._patches.resume()
                    _native.pop(op_id)

        return install_callbacks

    def describe(self) -> None:
        """Set the arguments of completed compilations, if torch knows them."""
        if not self._kinds:
            return
        kinds, self._kinds = self._kinds, []
        utils = sys.modules["torch._dynamo.utils"]
        found = {metrics.compile_id: metrics for metrics in utils.get_compilation_metrics()}
        for compile_id, trigger, kind in kinds:
            args: dict[str, object] = {"compile_id": compile_id, "trigger": trigger.lower()}
            metrics = found.get(compile_id)
            for name, field in (
                ("function", "co_name"),
                ("file", "co_filename"),
                ("line", "co_firstlineno"),
                ("recompile_reason", "recompile_reason"),
            ):
                value = getattr(metrics, field, None)
                if value is not None:
                    args[name] = value
            kind.set_args(args)
