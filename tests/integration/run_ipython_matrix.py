"""Run the tests in real shells and kernels against older releases of IPython.

::

    python -m tests.integration.run_ipython_matrix [VERSION ...]

Each release is unpacked into a folder of its own, as in ``tests/ort/run_matrix.py``. Without a
version: the oldest and the newest IPython 8 and the oldest IPython 9. The release that is installed
here is tested by pytest itself.
"""

from __future__ import annotations

import subprocess
import sys

from tests.ort.run_matrix import install, run

VERSIONS = ("8.12.0", "8.39.0", "9.0.0")
FILES = [f"tests/integration/test_{name}.py" for name in ("tracebacks", "magic", "magic_faults")]
NEEDED = ("backcall", "decorator", "pickleshare")  # by IPython 8


def check(version: str) -> str:
    """Run the tests; return what went wrong, or an empty text."""
    try:
        release = install("ipython", version, *NEEDED)
    except subprocess.CalledProcessError as error:
        return f"it could not be installed: {error}"
    seen = run(release, "IPython", "--version").stdout.strip()
    if seen != version:
        return f"IPython {seen} ran instead"
    done = run(release, "pytest", "-q", *FILES, "-p", "no:cacheprovider")
    print(f"IPython {version}: {(done.stdout.splitlines() or [done.stderr])[-1]}", flush=True)
    return done.stdout[-6000:] + done.stderr[-2000:] if done.returncode else ""


def main() -> int:
    """Check every release; return 1 if one failed."""
    failed = 0
    for version in sys.argv[1:] or VERSIONS:
        why = check(version)
        if why:
            print(f"\n== IPython {version} ==\n{why}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
