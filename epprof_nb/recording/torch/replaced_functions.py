"""The functions of PyTorch that are replaced while its work is recorded.

The framework imports this module when other code has imported torch: recordings without PyTorch do
not need it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.patches import Patches, Switch, recorded_function
from epprof_nb.recording.torch.autograd_engine import open_engine
from epprof_nb.recording.torch.backward_counts import BackwardCounts
from epprof_nb.recording.torch.backward_passes import recorded_backward
from epprof_nb.recording.torch.cached_calls import CachedCalls
from epprof_nb.recording.torch.collective_calls import replace_process_groups
from epprof_nb.recording.torch.compilations import Compilations
from epprof_nb.recording.torch.compiled_modules import CompiledModules
from epprof_nb.recording.torch.module_calls import classes_with_own_call, recorded_call
from epprof_nb.recording.torch.module_paths import ModulePaths
from epprof_nb.recording.torch.optimizers_and_loaders import recorded_enter, recorded_exit
from epprof_nb.recording.torch.transformers_generate import Generations
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Callable

_DYNAMO = "torch._dynamo"


class ReplacedFunctions:
    """The functions of torch that are replaced from one start to one stop.

    Attributes
    ----------
    paths
        The paths of modules.
    """

    def __init__(self) -> None:
        import torch

        self._switch = Switch()
        self._backward = BackwardCounts()
        self.paths = _kept_paths(torch.nn.Module)
        self._recorded_call: _native.RecordedModule | None = None
        self._patches, self._around_compilations = Patches(), Patches()
        self.compilations = Compilations(self._patches, self._switch)
        self._generations = Generations(self._is_off)
        self._cached = CachedCalls(self._generations.is_generating)
        self._compiled = CompiledModules(self.paths, self._backward, self._switch)
        try:
            _native.modules_record(True)  # noqa: FBT003 - positional only
            with suppress(Exception):  # backward passes then get hooks
                open_engine()
            # Nodes that this thread has created so far are not linked.
            number = torch.autograd._get_sequence_nr()  # noqa: SLF001 - no public name
            _native.modules_begin_thread(number)
            self._replace_functions()
            # Importing it takes seconds. Its modules keep references to functions of torch, which
            # must be the original ones.
            after_import(_DYNAMO, self._record_compilations, before=self._patches.suspend)
            self._compiled.start()
            self.paths.find_models()
            self._cached.prepare(self.paths.classes)
        except BaseException:
            self.stop()
            raise

    def _replace_functions(self) -> None:
        import torch

        replace, is_off = self._patches.replace, self._is_off
        own = list(classes_with_own_call(torch.nn.Module))
        replace(torch.nn.Module, "__call__", self._recorded_module)
        for module_class in own:
            replace(module_class, "__call__", lambda _: self._recorded_call)
        replace(
            torch.autograd,
            "_engine_run_backward",
            lambda original: recorded_backward(
                original, self._backward, is_off, _is_autograd_compiled
            ),
        )
        record_function = torch.autograd.profiler.record_function
        replace(record_function, "__enter__", lambda original: recorded_enter(original, is_off))
        replace(record_function, "__exit__", lambda original: recorded_exit(original, is_off))
        replace_process_groups(self._patches, is_off)
        # Other code may have imported the public function under another name. It calls the one in
        # its closure.
        clip = torch.nn.utils.clip_grad_norm_
        names = getattr(getattr(clip, "__code__", None), "co_freevars", ())
        if "func" in names:
            cell = clip.__closure__[names.index("func")]
            replace(cell, "cell_contents", self._recorded_clipping)

    def _recorded_module(self, original: Callable[..., Any]) -> _native.RecordedModule:
        self._recorded_call = recorded_call(original, self.paths, self._cached)
        return self._recorded_call

    def _recorded_clipping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        is_compiling = sys.modules["torch"].compiler.is_compiling
        return recorded_function(
            original, "clip_grad_norm_", "optimizer", "torch",
            lambda: is_compiling() or self._is_off(),
        )  # fmt: skip

    def _record_compilations(self) -> None:
        self._patches.resume()
        callback = sys.modules.get(f"{_DYNAMO}.callback")
        handler = getattr(callback, "CompilationCallbackHandler", None)
        if handler is not None:
            self._around_compilations.replace(
                handler, "install_callbacks", self.compilations.recorded
            )

    def _is_off(self) -> bool:
        return not self._switch.on or _is_tracing()

    def stop(self) -> None:
        """Restore the functions. Replacements that others have wrapped stop recording."""
        self._switch.on = False
        if self._recorded_call is not None:
            self._recorded_call.stop()
        cancel(_DYNAMO, self._record_compilations)
        self._generations.stop()
        self._cached.stop()
        self._compiled.stop()
        self._around_compilations.restore()
        self._patches.restore()
        _native.modules_record(False)  # noqa: FBT003 - positional only

    def notes(self) -> list[str]:
        """Return notes on backward passes that are not linked to modules."""
        counts = self._backward
        notes = []
        if counts.unlinked:
            notes.append(
                f"{counts.unlinked:,} of {plural(counts.nodes, 'node')} of backward passes are not "
                "linked to a module: their forward pass ran before the profile or in a backward "
                "pass, or several threads ran modules at once. Their work is attributed to the "
                "statement."
            )
        if counts.compiled:
            notes.append(
                f"{plural(counts.compiled, 'backward pass', 'backward passes')} of compiled "
                "autograd are not linked to modules."
            )
        if counts.failure:
            notes.append(f"A backward pass is not linked to modules: {counts.failure}")
        return notes + self._compiled.notes()


@lru_cache(maxsize=1)
def _kept_paths(module_type: type) -> ModulePaths:
    """Return the paths of modules, which sessions share."""
    return ModulePaths(module_type, _is_tracing)


def _is_tracing() -> bool:
    context = sys.modules["torch"]._guards.TracingContext  # noqa: SLF001 - no public name
    return context.try_get() is not None


def _is_autograd_compiled() -> bool:
    """Whether compiled autograd runs backward passes; hooks would become part of its graphs."""
    compiled = sys.modules.get("torch._dynamo.compiled_autograd")
    return bool(getattr(compiled, "compiled_autograd_enabled", False))
