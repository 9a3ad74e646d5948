"""``%config GpuProfile``: the defaults of the magics' options."""

from __future__ import annotations

from traitlets import Bool, Float, Int, Unicode
from traitlets.config import Configurable

from epprof_nb.core.options import Options

_DEFAULTS = Options()


class GpuProfile(Configurable):
    """Defaults of ``%%gpuprofile`` and ``%gpuprofile``; an option given there comes first."""

    detail = Unicode(
        _DEFAULTS.detail,
        help="What to record: default, api, memory, overhead or all; several joined by commas.",
    ).tag(config=True)
    time_limit = Float(
        None, allow_none=True, help="Seconds after which recording stops; None for no limit."
    ).tag(config=True)
    max_records = Int(
        _DEFAULTS.max_records, help="Activities kept at most; those beyond are counted as lost."
    ).tag(config=True)
    lines = Bool(True, help="Record each statement of the cell as an op.").tag(config=True)  # noqa: FBT003
    quiet = Bool(False, help="Show nothing under the cell.").tag(config=True)  # noqa: FBT003
    live = Bool(False, help="Show progress while a cell runs.").tag(config=True)  # noqa: FBT003
