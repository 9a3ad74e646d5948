"""Sphinx configuration. CONTRIBUTING.md has the command that builds the pages."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from epprof_nb.core.version import package_version

sys.path.insert(0, str(Path(__file__).parent))

project = "epprof_nb"
author = "the epprof_nb developers"
project_copyright = f"{author}, Apache-2.0"
release = version = package_version()

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_nb",
    "extensions.magic_options",
    "extensions.repository_links",
]
exclude_patterns = ["_build", "extensions"]
html_theme = "furo"
html_title = f"epprof_nb {release}"
html_static_path: list[str] = []

default_role = "py:obj"
autodoc_typehints = "none"  # numpydoc shows the types, and signatures stay readable
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

myst_heading_anchors = 3

# Notebooks run on the host device while the pages are built, so that their outputs are those of
# this version.
nb_execution_mode = "cache"
# The extra for the documentation has no PyTorch: without it, this page has no outputs.
nb_execution_excludepatterns = [] if find_spec("torch") else ["*/07_pytorch_training.ipynb"]
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
