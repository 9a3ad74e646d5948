"""Spread between recordings of the same code, measured for ``epprof calibrate``."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epprof_nb.analysis.compare.match_ops import match
from epprof_nb.analysis.compare.reasons_not_to_compare import refusals
from epprof_nb.analysis.compare.recording_conditions import slowdown_of_host
from epprof_nb.analysis.compare.recordings import Recordings
from epprof_nb.analysis.compare.spread_between_recordings import (
    MIN_RECORDINGS,
    measure_spread,
    place_of,
)
from epprof_nb.commands.recorded_scripts import Script, ScriptFailedError, record_rounds
from epprof_nb.core.errors import EpprofError
from epprof_nb.core.least_repeats import MIN_COMPARED
from epprof_nb.files.measured_spreads import check_spread_writable, save_spread, spread_path
from epprof_nb.profiles import load
from epprof_nb.util.format import percent
from epprof_nb.util.machine_id import machine_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.data.profile_data import ProfileData


_BUSY = 0.1
"""Logarithm of the slowdown from which a recording measures the load rather than its spread."""


def measure_and_keep(
    paths: Sequence[Path], script: str | None, rounds: int, *, if_quiet: bool = False
) -> None:
    """Measure the spread between recordings, print it and keep it in the user's cache.

    Parameters
    ----------
    paths
        Recordings of the same code. If empty, a script is recorded.
    script
        The script; None for the command's own workload on the host device.
    rounds
        Number of recordings to make.
    if_quiet
        Whether to ignore recordings of a busy machine.

    Raises
    ------
    click.ClickException
        If there are too few recordings, or their code differs. After the values are printed, if the
        cache cannot be written.
    """
    if not paths:
        try:
            check_spread_writable()
        except OSError as error:
            click.echo(f"The values will be printed, but not kept. {_why(error)}", err=True)
    try:
        profiles = [load(path) for path in paths] if paths else _record(script, rounds)
    except (EpprofError, OSError, ScriptFailedError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    side = Recordings(profiles)
    if if_quiet:
        side = _quiet(side)
    _check(side)
    machine, devices = place_of(side.indexes) or ("", "")
    if machine != machine_id():
        raise click.ClickException(
            "The recordings were not made on this machine with the same devices, so they do not "
            "show how much recordings vary here."
        )
    spread = measure_spread(side, datetime.now(UTC).astimezone().date().isoformat())
    click.echo(
        f"{spread.recordings} recordings of the same code on {devices or 'no device'} vary by "
        f"(standard deviation of the median):\n"
        f"  elapsed time {percent(spread.total)}\n"
        f"  device times {percent(spread.device)}\n"
        f"  host times   {percent(spread.host)}"
    )
    load_average, cores = os.getloadavg()[0], os.cpu_count() or 1
    if not paths and load_average > cores:
        click.echo(
            f"Other processes kept the machine busy (load average {load_average:.1f} on {cores} "
            "cores). Recordings vary less on a quiet machine: calibrate again when it is quiet.",
            err=True,
        )
    try:
        path = save_spread(machine, devices, asdict(spread))
        if _is_host(side):
            # Times of code without device work are measured on the host, too.
            save_spread(machine, "", asdict(spread))
    except OSError as error:
        raise click.ClickException(f"The values were not kept. {_why(error)}") from error
    click.echo(
        "Comparisons of recordings made on this machine with the same devices use these values. "
        f"Kept in {path}"
    )


def _quiet(side: Recordings) -> Recordings:
    """Return the recordings that other processes hardly slowed down.

    Comparisons account for the slowdown by a load separately, so the spread does not include it.
    """
    quiet = [index.profile for index in side.indexes if slowdown_of_host(index) < _BUSY]
    if len(quiet) < MIN_RECORDINGS:
        raise click.ClickException(
            f"Other processes kept the machine busy in {len(side.indexes) - len(quiet)} of "
            f"{len(side.indexes)} recordings. Calibrate again when it is quiet."
        )
    return Recordings(quiet)


def _is_host(side: Recordings) -> bool:
    kinds = {
        device.get("device_id"): device.get("kind")
        for index in side.indexes
        for device in index.profile.info.get("devices") or ()
    }
    return all(kinds.get(device) == "host" for i in side.indexes for device in i.device_ids)


def _why(error: OSError) -> str:
    return (
        f"{spread_path()} cannot be written: {error.strerror or error}. Set XDG_CACHE_HOME to a "
        "writable folder."
    )


def _record(script: str | None, rounds: int) -> list[ProfileData]:
    with tempfile.TemporaryDirectory() as folder:
        if script is not None:
            return [*record_rounds([Script.parse(script)], rounds, Path(folder))[0]]
        with as_file(files("epprof_nb.commands") / "demo_scripts" / "same_work.py") as path:
            parts = Script.parse(f"python '{path}'")
            # Step 1 warms up.
            return [*record_rounds([parts], rounds, Path(folder), steps="2:22")[0]]


def _check(side: Recordings) -> None:
    if len(side.indexes) < MIN_RECORDINGS:
        raise click.ClickException(
            f"{len(side.indexes)} recordings are too few. Record the same code at least "
            f"{MIN_RECORDINGS} times, preferably 10."
        )
    if min(side.repeats) < MIN_COMPARED:
        raise click.ClickException(
            f"A recording has {min(side.repeats)} repeats, and at least {MIN_COMPARED} are needed. "
            "Record a cell with --repeat 20, or call epprof_nb.step() at the start of each step "
            "of a script."
        )
    for refusal in refusals(side.indexes[:1], side.indexes[1:]):
        raise click.ClickException(f"The recordings cannot be combined. {refusal.text}")
    first = Recordings([side.indexes[0].profile])
    for index in side.indexes[1:]:
        pairs = match(first.side, Recordings([index.profile]).side)
        if any(pair.status != "matched" for pair in pairs):
            raise click.ClickException(
                "The recordings are not of the same code: their ops differ. Record one piece of "
                "code several times."
            )
