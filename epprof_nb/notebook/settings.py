"""``%config GpuProfile``: default values for the options of the magics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from traitlets import Bool, Float, Int, List, TraitError, Unicode, default, observe
from traitlets.config import Config, Configurable

from epprof_nb.core.options import FRAMEWORKS, Options
from epprof_nb.notebook.messages import warn
from epprof_nb.recording.nvtx import injection as nvtx_injection

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_DEFAULTS = Options()


class GpuProfile(Configurable):
    """Defaults of ``%%gpuprofile`` and ``%gpuprofile``; options of a cell override them."""

    detail = Unicode(
        _DEFAULTS.detail,
        help="What to record: default, api, memory, overhead, operators, shapes or all, separated "
        "by commas.",
    ).tag(config=True)
    time_limit = Float(
        None, allow_none=True, help="Seconds after which recording stops; None for no limit."
    ).tag(config=True)
    max_records = Int(
        _DEFAULTS.max_records,
        help="Maximum number of records (activities, allocations, calls and so on). Further ones "
        "are dropped and counted.",
    ).tag(config=True)
    ort_nodes = Unicode(
        None,
        allow_none=True,
        help="Runs of ONNX Runtime sessions to record node by node: every, auto or off. "
        "None: as passed to epprof_nb.onnxruntime.install.",
    ).tag(config=True)
    frameworks = List(
        Unicode(),
        list(_DEFAULTS.frameworks),
        help="Frameworks whose operations are recorded, if the code uses them: "
        f"{', '.join(FRAMEWORKS)}. [] records none.",
    ).tag(config=True)
    own = List(
        Unicode(),
        help="Folders, files or packages to treat as your code when the line of a launch "
        "is looked up.",
    ).tag(config=True)
    library = List(
        Unicode(), help="Folders, files or packages to treat as library code there."
    ).tag(config=True)
    lines = Bool(True, help="Record each statement of the cell as an op.").tag(config=True)  # noqa: FBT003
    stacks = Bool(_DEFAULTS.stacks, help="Record the Python stack of each launch and wait.").tag(
        config=True
    )
    samples = Bool(
        _DEFAULTS.samples, help="Sample the Python code that the host runs between launches."
    ).tag(config=True)
    quiet = Bool(False, help="Do not display the profile.").tag(config=True)  # noqa: FBT003
    live = Bool(False, help="Show progress while a cell runs.").tag(config=True)  # noqa: FBT003
    children = Bool(
        False,  # noqa: FBT003
        help="Let child processes that start from now on listen for cells with --children, once "
        "they import a GPU library.",
    ).tag(config=True)
    explain_out_of_memory = Bool(
        True,  # noqa: FBT003
        help="Below a cell that ran out of GPU memory, show what holds the memory, even without "
        "%%gpuprofile.",
    ).tag(config=True)
    calibrate = Bool(
        True,  # noqa: FBT003
        help="After the first comparison on a machine that was not calibrated, run `epprof "
        "calibrate` once, in the background at the lowest priority.",
    ).tag(config=True)

    @default("calibrate")
    def _may_calibrate(self) -> bool:
        return os.environ.get("EPPROF_CALIBRATE") != "0"

    @observe("frameworks")
    def _offer_nvtx(self, _: object) -> None:
        # The Python package nvtx is slower once it is attached, even outside sessions.
        if "nvtx" in self.frameworks:
            nvtx_injection.offer()
        else:
            nvtx_injection.withdraw()


def settings_of(shell: InteractiveShell) -> GpuProfile:
    """Return the settings of a shell, without the values that no setting can have.

    IPython keeps a value that ``%config`` has refused, and configuration files may have any.
    """
    try:
        return GpuProfile(parent=shell)
    except TraitError:
        chosen = shell.config["GpuProfile"]
        for name, value in list(chosen.items()):
            try:
                GpuProfile(config=Config(GpuProfile={name: value}))
            except TraitError as error:
                del chosen[name]
                warn(
                    f"the setting GpuProfile.{name} has its default, because its value cannot be "
                    f"used: {error} Set another one with %config or in the configuration file."
                )
        return GpuProfile(parent=shell)
