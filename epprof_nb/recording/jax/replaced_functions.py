"""The functions of JAX that are replaced while its work is recorded.

The framework imports this module when other code has imported jax.
"""

from __future__ import annotations

from epprof_nb import _native
from epprof_nb.recording.frameworks.patches import Patches, Switch
from epprof_nb.recording.jax.calls import describe_call
from epprof_nb.recording.jax.compilations import JaxCompilations
from epprof_nb.recording.jax.nvtx_attachment import is_xla_attached
from epprof_nb.recording.jax.transfers import record_transfers


class ReplacedFunctions:
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

    def notes(self) -> list[str]:
        """Return a note if XLA's ranges of NVTX do not reach this package."""
        if is_xla_attached():
            return []
        note = (
            "HLO instructions of JAX are not recorded, because the NVTX of its library is not "
            "attached. Restart Python, and import epprof_nb before JAX uses the GPU."
        )
        return [note]

    def stop(self) -> None:
        """Restore the functions. Replacements that others have wrapped stop recording."""
        self._switch.on = False
        _native.vectorcalls_stop()
        self._patches.restore()
        self._compilations.stop()


def _nothing() -> None:
    """Do nothing."""
