"""A stand-in for the driver's library, libcuda, that only says whether CUDA has been started."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DRIVER = """
static int started;
void start(void) { started = 1; }
int cuDeviceGetCount(int* count) { *count = started; return started ? 0 : 3; }
"""


def build(folder: Path) -> Path:
    """Build the library; its function ``start`` starts CUDA."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    source, path = folder / "driver.c", folder / "libcuda.so.1"
    source.write_text(DRIVER, encoding="utf-8")
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    subprocess.run(["gcc", *options, source, "-o", path], check=True)
    return path
