"""Execute the tutorials on the host device and store their outputs, small enough for a repository.

GitHub shows a stored notebook without running it. ``python -m tests.tools.store_tutorial_outputs``
executes all tutorials, or the named ones. Run it after a change of a tutorial or of the views of
profiles. Pages of profiles (HTML of hundreds of kB) are left out: GitHub does not run scripts, and
the picture beside them has the same information.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from base64 import b64decode, b64encode
from importlib.util import find_spec
from typing import TYPE_CHECKING

from PIL import Image

from tests.helpers.jupyter_kernels import run_notebook
from tests.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from nbformat import NotebookNode

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CODE = "outputs_of"
"""Key of the notebook's metadata: the hash of the code cells whose outputs are stored."""
_MAX_HTML = 20_000
_COLOURS = 128


def code_hash(notebook: NotebookNode) -> str:
    """Return a hash of the code cells."""
    code = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def needs(path: Path) -> str | None:
    """Return the package that a tutorial needs and that is missing, if there is one."""
    return "torch" if "pytorch" in path.stem and find_spec("torch") is None else None


def reduce(notebook: NotebookNode) -> None:
    """Remove from the outputs what GitHub does not show, and meaningless differences."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata[CODE] = code_hash(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.metadata.pop("execution", None)
        # Progress that was cleared.
        cell.outputs = [o for o in cell.outputs if o.output_type != "display_data" or o.data]
        for output in cell.outputs:
            _reduce(output.get("data", {}))
            if "metadata" in output:
                output.metadata = {}


def _reduce(data: dict[str, str]) -> None:
    for mime in [m for m in data if m not in ("text/plain", "text/html", "image/png")]:
        del data[mime]
    page = data.get("text/html", "")
    if len(page) > _MAX_HTML or "<iframe" in page or "<script" in page:
        del data["text/html"]
    if "image/png" in data:
        data["image/png"] = _smaller(data["image/png"])


def _smaller(png: str) -> str:
    """Return a picture with fewer colours."""
    written = io.BytesIO()
    with Image.open(io.BytesIO(b64decode(png))) as picture:
        reduced = picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        if isinstance(reduced.info.get("transparency"), tuple):  # a colour of the original
            del reduced.info["transparency"]
        reduced.save(written, "PNG", optimize=True)
    return b64encode(written.getvalue()).decode()


def read(path: Path) -> NotebookNode:
    """Read a notebook."""
    import nbformat  # takes two seconds, which most workers of pytest save

    return nbformat.read(path, as_version=4)


def main(names: list[str]) -> None:
    """Store the outputs of the tutorials whose file names begin with one of `names`, or of all."""
    import nbformat

    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same device everywhere
    for path in NOTEBOOKS:
        if names and not path.name.startswith(tuple(names)):
            continue
        if missing := needs(path):
            print(f"{path.name}: left as it is, because {missing} is not installed")
            continue
        notebook = read(path)
        run_notebook(notebook, cwd=path.parent, timeout_s=600)
        reduce(notebook)
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
