"""Run the command line: ``python -m epprof_nb`` is ``epprof``."""

import os
import sys

if not sys.flags.safe_path:
    # As for the command: modules of the program do not replace those that the profiler needs.
    sys.path[0] = os.path.dirname(sys.executable)  # noqa: PTH120

from epprof_nb.cli import main

if __name__ == "__main__":
    main(prog_name="python -m epprof_nb")
