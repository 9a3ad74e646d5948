"""Recording of JAX's jitted functions, compilations, waits and transfers."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from epprof_nb.recording.frameworks.patches import missing_functions
from epprof_nb.util.after_import import after_import, cancel

if TYPE_CHECKING:
    from epprof_nb.core.options import Options
    from epprof_nb.recording.jax.replaced_functions import ReplacedFunctions


class JaxFramework:
    """Records the work of JAX as ops. See `epprof_nb.recording.frameworks.framework.Framework`."""

    name = "jax"

    def __init__(self) -> None:
        self._wanted = False
        self._with_nvtx = False
        self._recording: ReplacedFunctions | None = None
        self._notes: list[str] = []
        os.register_at_fork(after_in_child=self.stop)

    def start(self, options: Options) -> None:
        """Start recording now, or when other code has imported jax."""
        self._wanted = True
        self._notes = []
        self._with_nvtx = "nvtx" in options.frameworks
        after_import("jax", self._begin)

    def extend(self, options: Options) -> None:
        """Note whether NVTX ranges are recorded; everything else is always recorded."""
        self._with_nvtx |= "nvtx" in options.frameworks

    def _begin(self) -> None:
        if not self._wanted or self._recording is not None:
            return
        missing = missing_functions("jax", _NEEDED)
        reason = f"it has no {', '.join(missing)}" if missing else ""
        if not missing:
            from epprof_nb.recording.jax.replaced_functions import ReplacedFunctions

            try:
                self._recording = ReplacedFunctions(self._notes)
            except (AttributeError, ImportError, TypeError) as error:  # in an unsupported release
                reason = str(error)
        if reason:
            version = getattr(sys.modules["jax"], "__version__", "unknown")
            self._notes.append(
                f"Functions of jax {version} are not recorded, because {reason}. Versions from "
                "0.8.2 on are supported."
            )

    def complete(self) -> None:
        """Do nothing: ops are complete when they end."""

    def notes(self) -> list[str]:
        """Return notes on what is not recorded."""
        of_recording = self._recording.notes() if self._recording and self._with_nvtx else []
        return [*self._notes, *of_recording]

    def stop(self) -> None:
        """Restore all functions of jax, also in a forked child."""
        self._wanted = False
        cancel("jax", self._begin)
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.stop()


_NEEDED = (
    "jit",
    "monitoring.register_scalar_listener",
    "monitoring.unregister_scalar_listener",
    "monitoring.register_event_time_span_listener",
    "monitoring.unregister_event_time_span_listener",
    "monitoring.register_event_listener",
    "monitoring.unregister_event_listener",
)
