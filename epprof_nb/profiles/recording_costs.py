"""Costs of recording that were learned on this machine, for new profiles."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableMapping


def add_recording_costs(info: MutableMapping[str, Any]) -> None:
    """Add the costs by kind of event to the info of a profile of this machine, if they are known.

    Nothing that is wrong with their file reaches the profile.
    """
    # Imported with the first profile: loading the extension takes no longer.
    from epprof_nb.files.recording_costs import load_costs

    with suppress(OSError):
        if costs := load_costs():
            info["recording_costs"] = costs
