"""Imports of what a first profiled cell needs, on a thread, while no cell runs."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from epprof_nb.core.own_thread import OwnThread

if TYPE_CHECKING:
    from collections.abc import Sequence

MODULES = (
    "numpy",
    "numpy.ma",  # which `numpy.unique` needs
    "importlib.metadata",
    "email.parser",  # which `importlib.metadata` imports later
    "epprof_nb.recording.session.service",
    "epprof_nb.notebook.cell_run",
    "epprof_nb.recording.cupti.recorder",
    "epprof_nb.recording.host.recorder",
    "epprof_nb.recording.memory.recorder",
    "epprof_nb.recording.onnxruntime.recorder",
    "epprof_nb.recording.session.framework_recorder",
    "epprof_nb.recording.torch.framework",
    "epprof_nb.recording.session.session",
    "epprof_nb.recording.session.profile_info",
    "epprof_nb.profiles",
    "epprof_nb.analysis.critical_path.chain",
    "epprof_nb.analysis.utilisation.host_idle",
    "epprof_nb.analysis.findings.rules.host_work.host_lines",
    "epprof_nb.analysis.findings.rules.copies.repeated_copies",
    "epprof_nb.analysis.findings.rules.iterations.slow_first_step",
    "epprof_nb.analysis.findings.ranking",
    "epprof_nb.analysis.summary.headline",
    "epprof_nb.views.view_model",
    "PIL.ImageDraw",
    "PIL.PngImagePlugin",
    "epprof_nb.views.renderers.png",
    "epprof_nb.views.renderers.html",
    "epprof_nb.views.view",
)
"""In an order in which each import is short, because a cell waits for the one that has begun."""


class IdleImports:
    """Imports of modules, one after the other, between the cells of a shell.

    Parameters
    ----------
    modules
        Names of the modules. Nothing is imported if the last one already is.

    Examples
    --------
    >>> imports = IdleImports(["wsgiref.validate"])
    >>> imports.cell_ends()
    >>> imports.thread.join()
    >>> "wsgiref.validate" in sys.modules
    True
    """

    def __init__(self, modules: Sequence[str] = MODULES) -> None:
        self._modules = modules
        # Held by a cell, or by one import: a fork in a cell would keep the lock of a module for
        # ever, and a cell would share its time with the imports.
        self._may_run = threading.Lock()
        self._cell_runs = self._has_ended = False
        self.thread: OwnThread | None = None

    def cell_begins(self) -> None:
        """Wait for the import that has begun, and begin no other until the cell has ended."""
        if not self._cell_runs:
            self._cell_runs = self._may_run.acquire()

    def cell_ends(self) -> None:
        """Go on with the imports; start with them if this is the first cell."""
        self._release()
        if self.thread is None and self._modules[-1] not in sys.modules:
            self.thread = OwnThread(target=self._import, daemon=True, name="imports")
            with suppress(RuntimeError):  # no more threads: the first profiled cell imports them
                self.thread.start()

    def end(self) -> None:
        """Begin no further import."""
        self._has_ended = True
        self._release()

    def _release(self) -> None:
        if self._cell_runs:
            self._cell_runs = False
            self._may_run.release()

    def _import(self) -> None:
        with suppress(Exception):  # the profiled cell raises it again
            for name in self._modules:
                with self._may_run:
                    if self._has_ended:
                        return
                    import_module(name)
