"""Record the eager and the replayed runs of notebooks/04_cuda_graphs.ipynb on a GPU.

::

    python -m tests.tools.record_cuda_graphs [FOLDER]

runs the cells of the notebook up to its replays, with sessions on cuda:0, and writes the two
profiles, without paths and names of the machine. The notebook loads them from ``recordings``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from tests.paths import ROOT

NOTEBOOK = ROOT / "notebooks" / "04_cuda_graphs.ipynb"
PROFILES = ("eager", "replayed")


def main(folder: str = str(NOTEBOOK.parent / "recordings")) -> None:
    """Run the cells and write the profiles."""
    shell = InteractiveShell.instance()
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        shell.run_cell(
            source.replace("ep.session(model", 'ep.session(model, device="cuda:0"'),
            store_history=True,
        ).raise_error()
        if source.startswith(f"%%gpuprofile {PROFILES[-1]}"):
            break
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in PROFILES:
        path = Path(folder) / f"cuda_graphs_{name}.epprof"
        shared = shell.user_ns[name].redacted(["paths", "hosts"])
        shared.info["versions"]["platform"] = "Linux-x86_64"  # a kernel's name contains the host's
        shared.save(path)
        print(f"{path}: {path.stat().st_size:,} bytes")
        print(shell.user_ns[name])


if __name__ == "__main__":
    main(*sys.argv[1:])
