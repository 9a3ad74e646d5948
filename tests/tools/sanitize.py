"""Run tests against the native core built with sanitizers.

Builds the extension with AddressSanitizer and UndefinedBehaviorSanitizer (with ``--thread``:
ThreadSanitizer) in a temporary folder, and runs pytest with it instead of the installed one. The
first error ends the run with a report. Other arguments go to pytest; unless they name files, the
unit tests, those of ONNX Runtime and the stress programs run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.paths import ROOT

TESTS = ("unit", "ort", "stress")
FALSE_POSITIVES = """
# The C library frees the thread-local memory of an ended thread when another one starts; the
# sanitizer does not see that it waits for the end.
race:_dl_deallocate_tls
# Arrow is not built with the sanitizer, which does not see its atomics.
race:libarrow.so
race:libparquet.so
"""
# Nor are ONNX Runtime and NumPy built with it: data that they copy or pass between threads looks
# like a race, and so do reads by ONNX Runtime's threads of data that was created with the session.
FALSE_POSITIVES_OF_SESSIONS = """
race:create_ep
race:create_python_kernel
race:epprof::ort::make_profiler
race_top:memcmp
race_top:memmove
race_top:memcpy
race_top:operator delete
race_top:pthread_mutex_lock
race_top:strlen
"""
RUN = """
import importlib.util, sys
import pytest
spec = importlib.util.spec_from_file_location("epprof_nb._native", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
import epprof_nb
epprof_nb._native = module
sys.exit(pytest.main(sys.argv[2:]))
"""


def build(folder: Path, flags: str) -> Path:
    """Build the extension in `folder`, and the stand-in for the driver; return the extension."""
    environment = os.environ | {"CFLAGS": flags, "CXXFLAGS": flags, "LDFLAGS": flags}
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "-C", f"build-dir={folder / 'build'}", "-w", folder, ROOT),
        ],
        check=True,
        env=environment,
    )
    # Built before the tests, because a compiler does not run with the sanitizer's library.
    stand_in = "from tests.ep.fake_cuda.library import build; build()"
    subprocess.run([sys.executable, "-c", stand_in], check=True, cwd=ROOT, env=environment)
    (extension,) = (folder / "build").glob("_native*.so")
    return extension


def runtime(name: str) -> str:
    """Path of a sanitizer's runtime library, which must be loaded before Python."""
    found = subprocess.run(
        ["g++", f"-print-file-name=lib{name}.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not Path(found).exists():
        sys.exit(f"lib{name}.so is missing. Install the sanitizer runtimes of g++.")
    return found


def main() -> int:
    """Build and run; the exit status is pytest's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--thread", action="store_true", help="use ThreadSanitizer")
    options, tests = parser.parse_known_args()
    if not any(Path(argument.partition("::")[0]).exists() for argument in tests):
        tests += [str(ROOT / "tests" / name) for name in TESTS]
    with tempfile.TemporaryDirectory() as folder:
        sanitizers = "thread" if options.thread else "address,undefined"
        flags = f"-fsanitize={sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1"
        extension = build(Path(folder), flags)
        suppressions = Path(folder) / "suppressions"
        folders = {part for test in tests for part in Path(test.partition("::")[0]).parts}
        runs_sessions = bool(folders & {"ep", "ort"})
        suppressions.write_text(
            FALSE_POSITIVES + (FALSE_POSITIVES_OF_SESSIONS if runs_sessions else "")
        )
        environment = os.environ | {
            # libstdc++ as well: at its start, the runtime looks up exception functions in it.
            "LD_PRELOAD": f"{runtime('tsan' if options.thread else 'asan')}:{runtime('stdc++')}",
            "PYTHONMALLOC": "malloc",
            "CXXFLAGS": flags,
            "UBSAN_OPTIONS": "print_stacktrace=1",
            # A fork takes more locks at once than the search for deadlocks can hold.
            # A child of multiprocessing starts threads.
            "TSAN_OPTIONS": "halt_on_error=1:detect_deadlocks=0:die_after_fork=0:"
            f"allocator_may_return_null=1:suppressions={suppressions}",
            # Python keeps much until the process ends. Tests measure the memory of the process.
            "ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=8:allocator_may_return_null=1",
        }
        # pytest captures only what Python writes, so that the report is shown.
        command = [sys.executable, "-c", RUN, extension, "--capture=sys", *tests]
        return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
