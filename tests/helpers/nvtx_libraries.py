"""Libraries with their own copy of NVTX, compiled for tests, and the ops of their ranges."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT, TESTS

SOURCES = TESTS / "helpers" / "native"
CORE = ROOT / "epprof_nb" / "native"


def headers():
    """The folder with NVTX's headers, of the wheel nvidia-nvtx-cu12."""
    spec = importlib.util.find_spec("nvidia.nvtx") if importlib.util.find_spec("nvidia") else None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [Path(folder) / "include" for folder in folders]
    if not found or shutil.which("g++") is None:
        pytest.skip("needs the headers of nvidia-nvtx-cu12, and g++")
    return found[0]


def compiled(source, output, *options):
    subprocess.run(
        ["g++", "-std=c++17", f"-I{headers()}", f"-I{CORE}", *options, SOURCES / source, "-o",
         output, "-ldl"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return output


def built(folder):
    """Compile ``nvtx_library.cpp`` in a folder and return its path."""
    return compiled("nvtx_library.cpp", folder / "library.so", "-shared", "-fPIC")


def rows(prof):
    """Name, type, parent and arguments of each op."""
    ops = prof.ops
    names = ops["name"].astype(str)
    by_id = names.to_dict()
    parents = [by_id.get(parent) for parent in ops["parent_op_id"]]
    args = [None if value is None else dict(value) for value in ops["args"]]
    return list(zip(names, ops["op_type"].astype(str), parents, args, strict=True))
