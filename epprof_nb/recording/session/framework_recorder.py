"""The recorder of frameworks' operations, which are ops, not activities."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from epprof_nb.recording.dask.framework import DaskFramework
from epprof_nb.recording.frameworks.kernel_places import RUNTIMES, KernelFramework, unambiguous
from epprof_nb.recording.jax.framework import JaxFramework
from epprof_nb.recording.nvtx.framework import NvtxFramework
from epprof_nb.recording.recorder import Recorder, RecorderOutput
from epprof_nb.recording.session.framework_columns import add_framework_columns
from epprof_nb.recording.torch.framework import TorchFramework
from epprof_nb.recording.torch.graph_annotations import GraphAnnotations

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.core.options import Options
    from epprof_nb.data.table import Table
    from epprof_nb.recording.frameworks.framework import Framework


class FrameworkRecorder(Recorder):
    """Starts the frameworks that the options name. See `epprof_nb.recording.recorder.Recorder`."""

    name = "frameworks"

    def __init__(self) -> None:
        self._with_kernels = [KernelFramework(runtime) for runtime in RUNTIMES]
        self._known: tuple[Framework, ...] = (
            TorchFramework(), JaxFramework(), *self._with_kernels, NvtxFramework(), DaskFramework(),
        )  # fmt: skip
        self._started: list[Framework] = []
        self._annotations = GraphAnnotations()
        # They have stopped by themselves. A session of the child starts them again.
        os.register_at_fork(after_in_child=self._started.clear)

    def start(self, options: Options) -> list[str]:
        """Start the frameworks."""
        return self.extend(options)

    def extend(self, options: Options) -> list[str]:
        """Start further frameworks and keep the started ones."""
        for framework in self._known:
            if framework.name not in options.frameworks:
                continue
            if framework in self._started:
                framework.extend(options)
            else:
                self._started.append(framework)
                framework.start(options)
        if options.records("operators") and "torch" not in options.frameworks:
            return ["Operators are not recorded, because the option frameworks has no torch."]
        return []

    def drain(self, *, waited: bool = True) -> RecorderOutput:  # noqa: ARG002
        """Complete the ops in the native core, and return annotated nodes of graphs."""
        for framework in self._started:
            framework.complete()
        if any(framework.name == TorchFramework.name for framework in self._started):
            return RecorderOutput(graphs=self._annotations.drain())
        return RecorderOutput()

    def with_details(
        self,
        ops: Table,
        category: IntArray,
        payload: npt.NDArray[Any],
        outputs: Sequence[RecorderOutput],  # noqa: ARG002
    ) -> Table:
        """Return the ops with the columns that ops of frameworks take from their kind."""
        return add_framework_columns(ops, category, payload)

    @property
    def kernel_places(self) -> dict[str, dict[str, Any]]:
        """Return file and line of kernels by name, if their frameworks know them."""
        return unambiguous(place for known in self._with_kernels for place in known.kernel_places())

    def notes(self) -> list[str]:
        """Return the notes of all frameworks."""
        return [note for framework in self._started for note in framework.notes()]

    def stop(self) -> None:
        """Stop the frameworks."""
        while self._started:
            self._started[-1].stop()
            self._started.pop()
