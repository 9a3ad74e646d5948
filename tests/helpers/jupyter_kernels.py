"""Kernels for tests, which communicate over sockets in a folder.

Jupyter chooses TCP ports before it starts a kernel. Another process can take one of them in the
meantime; the kernel then ends with "Address already in use".
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_client.manager import AsyncKernelManager, KernelManager
from traitlets.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jupyter_client.blocking.client import BlockingKernelClient
    from nbformat import NotebookNode

_OVER_SOCKETS = Config({"KernelManager": {"transport": "ipc"}})


def run_notebook(
    notebook: NotebookNode, *, cwd: Path, timeout_s: float, kernel_name: str = "python3"
) -> None:
    """Run a notebook's cells in a new kernel, and add the outputs to the notebook."""
    from nbclient import NotebookClient  # its imports take two seconds, which most workers save

    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        manager = AsyncKernelManager(
            config=_OVER_SOCKETS, connection_file=_connection_file(folder), kernel_name=kernel_name
        )
        NotebookClient(notebook, timeout=timeout_s, km=manager).execute(cwd=str(cwd))


@contextlib.contextmanager
def running_kernel(*, timeout_s: float = 120) -> Iterator[BlockingKernelClient]:
    """Start a Python kernel; return a client that is connected to it.

    Raises
    ------
    RuntimeError
        If the kernel ends, or does not answer. The error has the output of the kernel.
    """
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        manager = KernelManager(config=_OVER_SOCKETS, connection_file=_connection_file(folder))
        log = Path(folder) / "log"
        with log.open("w") as written:
            manager.start_kernel(stdout=written, stderr=written)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=timeout_s)
        except RuntimeError as error:
            error.add_note(log.read_text())
            manager.shutdown_kernel(now=True)
            raise
        try:
            yield client
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def _connection_file(folder: str) -> str:
    # The sockets are beside it. The kernel would resolve a relative path in another folder.
    return str(Path(folder) / "kernel.json")
