"""Commands in another time namespace of Linux, as containers and other hosts have them."""

import shutil
import subprocess

import pytest


def in_other_namespace(*command):
    return [
        "unshare", "--time", "--monotonic", "86400", "--boottime", "86400", "--fork", *command
    ]  # fmt: skip


def has_time_namespaces():
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(in_other_namespace("true"), capture_output=True, check=False).returncode == 0
    )


needs_namespaces = pytest.mark.skipif(
    not has_time_namespaces(), reason="needs root and time namespaces of Linux"
)
