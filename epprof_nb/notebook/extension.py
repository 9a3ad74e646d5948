"""The IPython extension: ``%load_ext epprof_nb`` and ``%unload_ext epprof_nb``."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from epprof_nb import onnxruntime
from epprof_nb.core.errors import CaptureError
from epprof_nb.notebook import cell_transform
from epprof_nb.notebook.magic import ProfileMagics

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_NOTE_UNLOADED = (
    "Recording ended when the extension was unloaded inside the cell (%unload_ext or %reload_ext). "
    "The code after it ran without being recorded."
)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Load ``%%gpuprofile`` into IPython (``%load_ext epprof_nb``)."""
    if _loaded(shell) is None:
        _install(ProfileMagics(shell))
    try:
        onnxruntime.install()
    except CaptureError as error:
        from epprof_nb.recording.onnxruntime import sessions

        sessions.disable_with_reason(str(error))  # reported in each profile


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove ``%%gpuprofile`` from IPython."""
    magics = _loaded(shell)
    if magics is not None:
        _uninstall(magics)
        onnxruntime.uninstall()


def _loaded(shell: InteractiveShell) -> ProfileMagics | None:
    return next((t for t in shell.ast_transformers if isinstance(t, ProfileMagics)), None)


def _install(magics: ProfileMagics) -> None:
    """Register the magics, transformers, handlers and settings with the shell."""
    shell = magics.shell
    shell.register_magics(magics)
    shell.configurables.append(magics.settings)
    shell.input_transformers_cleanup.insert(0, cell_transform.transform_input)
    shell.ast_transformers.append(magics)
    shell.Completer.custom_matchers.append(magics.completions)
    for event, handler in magics.handlers().items():
        shell.events.register(event, handler)
    magics.install_names()
    magics.failures.follow()
    magics.children.follow()


def _uninstall(magics: ProfileMagics) -> None:
    """Undo `_install`, ending a profile in progress.

    The markers are kept, because functions defined in profiled cells call them. They have no effect
    then.
    """
    shell = magics.shell
    if not magics.runs:  # otherwise the running cell still calls them
        for name in magics.hooks():
            vars(builtins).pop(name, None)
    while magics.runs:
        magics.runs.pop().finish(note=_NOTE_UNLOADED)
    for event, handler in magics.handlers().items():
        shell.events.unregister(event, handler)
    magics.imports.end()
    magics.failures.end()
    magics.children.end()
    shell.ast_transformers.remove(magics)
    shell.Completer.custom_matchers.remove(magics.completions)
    shell.input_transformers_cleanup.remove(cell_transform.transform_input)
    shell.configurables.remove(magics.settings)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("gpuprofile", None)
