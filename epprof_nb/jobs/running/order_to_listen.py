"""The order of this process to its children: to listen for its cells and jobs."""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
from typing import TYPE_CHECKING

from epprof_nb.core.options import Options
from epprof_nb.jobs.child_start import follow_in_fork
from epprof_nb.jobs.running.cell_children import CellChildren
from epprof_nb.jobs.running.descendant_processes import seconds_since_start
from epprof_nb.jobs.running.private_folder import make_folder
from epprof_nb.recording.children.order_to_children import ORDER_FILE, Order
from epprof_nb.recording.children.propagation import give_order, withdraw_order

if TYPE_CHECKING:
    from pathlib import Path


class OrderToListen:
    """An order to children that start while somebody holds it.

    Those that have followed it listen as long as they and this process run. A process has one,
    `order_to_listen`, because an order replaces the one before.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._token = ""
        self._process = os.getpid()
        self._since_s = 0.0
        self._holders: set[str] = set()

    @property
    def is_given(self) -> bool:
        """Whether children that start now will listen."""
        return bool(self._holders) and os.getpid() == self._process

    def give(self, holder: str) -> None:
        """Let children that start from now on listen, until no holder is left.

        Parameters
        ----------
        holder
            Name of the code that needs the order.

        Raises
        ------
        OSError
            If the private folder cannot be written.
        """
        # Cleaners of temporary files may remove the folder.
        has_folder = self._folder is not None and self._folder.is_dir()
        if self.is_given and has_folder:
            self._holders.add(holder)
            return
        is_forked = self._process != os.getpid()  # the holders and the folder are the parent's
        if is_forked:
            self._holders.clear()
        if self._folder is None or is_forked or not has_folder:
            self._process, self._token = os.getpid(), secrets.token_hex(16)
            self._folder = make_folder()
            atexit.register(self.close)
            order = Order(
                job_id=self._folder.name,
                folder=os.fspath(self._folder),
                options=Options(),
                listen=True,
                token=self._token,
            )
            order.write(self._folder / ORDER_FILE)
        give_order(self._folder / ORDER_FILE, in_fork=follow_in_fork)
        self._since_s = seconds_since_start()
        self._holders.add(holder)

    def withdraw(self, holder: str) -> None:
        """Let children that start from now on start as usual, if no other holder is left."""
        if self.is_given and self._holders == {holder}:
            withdraw_order()
        self._holders.discard(holder)

    def close(self) -> None:
        """Withdraw the order and remove the folder: no child can be reached any more."""
        for holder in [*self._holders]:
            self.withdraw(holder)
        folder, self._folder = self._folder, None
        if folder is not None and os.getpid() == self._process:
            atexit.unregister(self.close)
            shutil.rmtree(folder, ignore_errors=True)

    def children_of_cell(self, options: Options, *, job_id: str = "") -> CellChildren:
        """Return the children of a cell that will be recorded with `options`, for a given job."""
        assert self._folder is not None  # noqa: S101 - it was given
        name = job_id or secrets.token_hex(8)
        job = self._folder / f"job-{name}"
        job.mkdir(mode=0o700)
        order = Order(job_id=name, folder=os.fspath(job), options=options)
        return CellChildren(order, self._folder, self._token, self._since_s)


order_to_listen = OrderToListen()
"""The order to listen of this process."""
