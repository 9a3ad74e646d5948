"""Recording of JAX's jitted functions, compilations, waits and transfers."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.recording.frameworks.patches import Patches, Switch, missing_functions
from epprof_nb.recording.jax.calls import describe_call
from epprof_nb.recording.jax.compilations import JaxCompilations
from epprof_nb.recording.jax.transfers import record_transfers
from epprof_nb.recording.jax.xla_attachment import is_xla_attached
from epprof_nb.util.after_import import after_import, cancel

if TYPE_CHECKING:
    from epprof_nb.core.options import Options


class JaxFramework:
    """Records the work of JAX as ops. See `epprof_nb.recording.frameworks.framework.Framework`."""

    name = "jax"

    def __init__(self) -> None:
        self._wanted = False
        self._with_nvtx = False
        self._recording: _Recording | None = None
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
            try:
                self._recording = _Recording(self._notes)
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
        if self._recording is None or not self._with_nvtx or is_xla_attached():
            return list(self._notes)
        note = (
            "HLO instructions of JAX are not recorded, because the NVTX of its library is not "
            "attached. Restart Python, and import epprof_nb before JAX uses the GPU."
        )
        return [*self._notes, note]

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


class _Recording:
    """The functions of JAX that are replaced from one start to one stop."""

    def __init__(self, notes: list[str]) -> None:
        import jax

        self._switch = Switch()
        self._patches = Patches()
        self._compilations = JaxCompilations(self._switch)
        try:
            record_transfers(self._patches, self._switch)
            _native.vectorcalls_record(type(jax.jit(_nothing)), describe_call)
        except RuntimeError as error:
            notes.append(f"Calls of jitted functions are not recorded, because {error}.")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Restore the functions. Replacements that others have wrapped stop recording."""
        self._switch.on = False
        _native.vectorcalls_stop()
        self._patches.restore()
        self._compilations.stop()


def _nothing() -> None:
    """Do nothing."""
