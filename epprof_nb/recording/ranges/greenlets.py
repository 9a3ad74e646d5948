"""Op stacks of greenlets, which gevent, eventlet and SQLAlchemy use.

The native core gives each greenlet its own stack. It learns of switches from a trace function
(``greenlet.settrace``), which it sets on each thread that opens an op.
"""

from __future__ import annotations

import sys

from epprof_nb import _native
from epprof_nb.util.after_import import after_import, cancel

_MODULE = "greenlet"


def follow() -> None:
    """Follow the switches of greenlets; called when the first session starts, on its thread."""
    after_import(_MODULE, _follow)


def _follow() -> None:
    _native.follow_greenlets(sys.modules[_MODULE])


def notes() -> list[str]:
    """Return a note for the user if switches were not reported."""
    missed = _native.missed_greenlet_switches()
    if not missed:
        return []
    note = (
        f"{missed:,} switches of greenlets were not reported, because another trace function took "
        "the place of epprof_nb's. Until the next op began or ended after each of them, GPU work "
        "may be attributed to an op of another greenlet. A function that is set with "
        "greenlet.settrace should call the one that settrace returns."
    )
    return [note]


def stop() -> None:
    """Stop following; called when the last session ends."""
    cancel(_MODULE, _follow)
    _native.leave_greenlets()
