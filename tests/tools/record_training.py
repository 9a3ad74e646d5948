"""Record the profiles that the tutorial on PyTorch shows, on a machine with a GPU.

::

    python -m tests.tools.record_training notebooks/recordings/pytorch_training.epprof

It runs the tutorial's own cells up to the first profiled one, with a shorter epoch.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from IPython.core.interactiveshell import InteractiveShell

NOTEBOOK = Path("notebooks/07_pytorch_training.ipynb")
STEPS = 3


def main(output: str) -> None:
    """Run the cells and write the profile."""
    shell = InteractiveShell.instance()
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        if "load(" in cell.source:  # of this recording
            continue
        source = cell.source.replace("unfold(0, 33, 33)", f"unfold(0, 33, 33)[: {16 * STEPS}]")
        shell.run_cell(source, store_history=True).raise_error()
        if source.startswith("%%gpuprofile"):
            break
    profile = shell.user_ns["prof"].redacted(["hosts", "paths"])
    profile.info["versions"].pop("platform")
    profile.save(output)
    print(profile.by_module()[["calls", "kernels", "device_ns", "host_ns"]].head(8).to_string())
    print(f"{Path(output).stat().st_size / 1e3:.0f} kB, {len(profile.ops)} ops, "
          f"{len(profile.activities)} activities, notes {profile.info['notes']}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
