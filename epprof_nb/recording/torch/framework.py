"""Recording of PyTorch's modules, backward passes, optimizers, data loaders and compilations."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from epprof_nb.recording.frameworks.patches import missing_functions
from epprof_nb.recording.torch.operators import Operators
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from epprof_nb.core.options import Options
    from epprof_nb.recording.torch.replaced_functions import ReplacedFunctions


class TorchFramework:
    """Records the work of PyTorch as ops.

    See `epprof_nb.recording.frameworks.framework.Framework`.
    """

    name = "torch"

    def __init__(self) -> None:
        self._wanted = False
        self._with_operators = self._with_shapes = False
        self._operators = Operators()
        self._recording: ReplacedFunctions | None = None
        self._notes: list[str] = []
        os.register_at_fork(after_in_child=self._restore)

    def start(self, options: Options) -> None:
        """Start recording now, or when other code has imported torch."""
        self._wanted = True
        self._with_operators = self._with_shapes = False
        self._notes = []
        self.extend(options)
        after_import("torch", self._begin)

    def extend(self, options: Options) -> None:
        """Record operators, or also their shapes, from now on, if the options request them."""
        had_operators, had_shapes = self._with_operators, self._with_shapes
        self._with_operators |= options.records("operators")
        self._with_shapes |= options.records("shapes")
        if self._recording is None:
            return
        if self._with_operators and not had_operators:
            self._operators.start(with_shapes=self._with_shapes)
        elif self._with_shapes and not had_shapes:
            self._operators.add_shapes()

    def _begin(self) -> None:
        if not self._wanted or self._recording is not None:
            return
        missing = missing_functions("torch", _NEEDED)
        if missing:
            version = getattr(sys.modules["torch"], "__version__", "unknown")
            self._notes.append(
                f"Modules of torch {version} are not recorded, because it has no "
                f"{', '.join(missing)}. Versions from 2.6 on are supported."
            )
            return
        from epprof_nb.recording.torch.replaced_functions import ReplacedFunctions

        try:
            self._recording = ReplacedFunctions()
        except Exception as error:  # noqa: BLE001 - the program runs, or imports torch now
            self._notes.append(
                "Modules of torch are not recorded, because its functions differ from PyTorch's "
                f"({format_error(error)}). Install PyTorch again, unless a test put a stand-in "
                "for it into `sys.modules`."
            )
            return
        if self._with_operators:
            self._operators.start(with_shapes=self._with_shapes)

    def complete(self) -> None:
        """Set the arguments of completed compilations."""
        if self._recording is not None:
            self._recording.compilations.describe()

    def notes(self) -> list[str]:
        """Return notes on work that could not be linked to a module."""
        of_operators = self._operators.notes() if self._with_operators else []
        of_recording = self._recording.notes() if self._recording else []
        return [*self._notes, *of_operators, *of_recording]

    def stop(self) -> None:
        """Restore all functions of torch, and keep the paths of modules."""
        recording = self._recording
        self._restore()
        if recording is not None:
            recording.paths.keep()

    def _restore(self) -> None:
        """Restore all functions of torch, also in a forked child, such as a data loader."""
        self._wanted = False
        cancel("torch", self._begin)
        self._operators.stop()
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.stop()


_NEEDED = (
    "compiler.is_compiling",
    "autograd._get_sequence_nr",
    "autograd._engine_run_backward",
    "autograd.profiler.record_function",
    "_C._current_graph_task_id",
    "_C._current_autograd_node",
    "_guards.TracingContext",
)
