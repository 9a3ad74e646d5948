"""The setting ``GpuProfile.children``: while it is set, child processes get the order to listen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.notebook.messages import warn
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from epprof_nb.notebook.settings import GpuProfile

_HOLDER = "the notebook"


class ChildrenSetting:
    """The order to listen of a notebook, given while ``GpuProfile.children`` is set."""

    def __init__(self, settings: GpuProfile) -> None:
        self._settings = settings
        self._is_given = False

    def follow(self) -> None:
        """Follow the setting from now on."""
        self._settings.observe(self._update, "children")
        self._update()

    def end(self) -> None:
        """Withdraw the order, let no child listen any more, and do not follow the setting."""
        from epprof_nb.jobs.running.order_to_listen import order_to_listen

        self._settings.unobserve(self._update, "children")
        self._withdraw()
        if not order_to_listen.is_given:  # otherwise the jobs of a cluster use it
            order_to_listen.close()

    def _update(self, _: object = None) -> None:
        if not self._settings.children:
            self._withdraw()
            return
        from epprof_nb.jobs.running.order_to_listen import order_to_listen

        try:
            order_to_listen.give(_HOLDER)
            self._is_given = True
        except OSError as error:
            warn(
                f"child processes cannot be told to listen ({format_error(error)}). Set TMPDIR to "
                "a folder that can be written, then set GpuProfile.children again."
            )

    def _withdraw(self) -> None:
        if self._is_given:
            from epprof_nb.jobs.running.order_to_listen import order_to_listen

            self._is_given = False
            order_to_listen.withdraw(_HOLDER)
