"""Background calibration, which measures after a comparison how much recordings vary here.

A comparison on a machine that was not calibrated assumes how much recordings of the same code vary.
``epprof calibrate`` then runs once, in separate processes.
"""

from __future__ import annotations

import sys

from epprof_nb.notebook.background_process import BackgroundProcess

SECONDS = 120
"""Time after which the calibration is ended."""
_COMMAND = (sys.executable, "-m", "epprof_nb.cli", "calibrate", "--if-quiet", "--until-eof")
NOTE = (
    "A background process now measures how much recordings vary on this machine, for later "
    f"comparisons. It runs once, at the lowest priority, for at most {SECONDS // 60} minutes, and "
    "not while a profile is recorded. `%config GpuProfile.calibrate = False` prevents it."
)

CALIBRATION = BackgroundProcess(_COMMAND, SECONDS)
"""The calibration of this process."""
