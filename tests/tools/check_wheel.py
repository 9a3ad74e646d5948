"""Check a built wheel: its tags and its contents.

Usage: python -m tests.tools.check_wheel WHEEL.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

NEEDED = (
    "epprof_nb/_native.abi3.so",
    "epprof_nb/_native.pyi",
    "epprof_nb/py.typed",
    "epprof_nb/recording/cupti/generated_layouts.json",
    "epprof_nb/views/static/job.js",
    "epprof_nb/views/static/loader.js",
    "epprof_nb/views/static/viewer.js",
    "epprof_nb/views/static/viewer.css",
    "epprof_nb/views/static/widget.js",
)
UNWANTED = ("epprof_nb/native/", "epprof_nb/frontend/", "tests/", "notebooks/")


def main(path: str) -> None:
    """Exit with what is wrong, if anything is."""
    wheel = Path(path)
    names = zipfile.ZipFile(wheel).namelist()
    wrong = [f"{name} is missing" for name in NEEDED if name not in names]
    wrong += [f"{name} should not be in it" for name in names if name.startswith(UNWANTED)]
    if "-cp311-abi3-" not in wheel.name:
        wrong.append("it is not tagged cp311-abi3")
    if wrong:
        sys.exit(f"{wheel.name}: " + "; ".join(wrong[:10]))
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(sys.argv[1])
