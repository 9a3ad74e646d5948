"""Sentences on the ops of an experiment, for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.experiments.design import MAX_WIDTH
from epprof_nb.analysis.experiments.measurements_in_info import Measured
from epprof_nb.analysis.experiments.ops_to_delay import SIDES
from epprof_nb.analysis.experiments.sensitivity import sensitivities
from epprof_nb.util.format import duration, in_backticks, percent, plural

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.experiments.ops_to_delay import Side
    from epprof_nb.analysis.experiments.sensitivity import Sensitivity
    from epprof_nb.analysis.experiments.slopes import Slope

MIN_WIN = 0.02
"""Least saving that counts, as a share of the wall time."""
_MIN_SHARE = 0.005
_WIDE = 0.25
"""Width of the range of a saving, as a share of the wall time, from which no value is stated."""
_NAME = 40
_LINES = 6
UNCERTAIN = "too uncertain"
ADVICE = (
    "Too uncertain: the repeats scattered more than before the delays. Repeat it when the machine "
    "is less busy, or with more repeats."
)
"""Advice on ops that are `UNCERTAIN`, said once for all of them."""
_LIMITS = {
    "host": "the host",
    "device": "other device work",
    "delays": "the delay between launches and work",
}


class OpSentence(NamedTuple):
    """An op in words: its name, shares, sensitivities, and what it would save."""

    name: str
    shares: str
    sensitivities: str
    win: str


def op_sentence(row: Sensitivity, device_word: str) -> OpSentence:
    """Return an op in words; `device_word` is ``"device"`` or ``"GPU"``."""
    words = {"device": device_word, "host": "host"}
    shares = [
        f"{percent(row.op.time_ns(side) / row.wall_ns)} of the {words[side]}"
        for side in SIDES
        if row.op.time_ns(side) >= _MIN_SHARE * row.wall_ns
    ]
    known = _known(row)
    slopes = [f"{words[side]} {slope_text(row.measured[side])}" for side in known]
    return OpSentence(row.op.name, ", ".join(shares), ", ".join(slopes), _win(row, known))


def slope_text(slope: Slope) -> str:
    """Return a slope with its interval in words; empty if it was not measured."""
    if math.isnan(slope.value):
        return ""
    if slope.half_width > MAX_WIDTH:
        return "uncertain"
    # Without the sign of a zero.
    return f"{round(slope.value, 2) + 0.0:.2f} ± {slope.half_width:.2f}"


def headline_of(measured: Measured) -> str:
    """Return the number of repeats, or the reason why nothing was measured."""
    ran = f" The code ran {measured.runs:,} times in all." if measured.runs else ""
    if not measured.repeats:
        return f"No experiment: {measured.refused}{ran}"
    text = f"Experiment: {plural(measured.repeats, 'repeat')} with delays.{ran}"
    if measured.plan:
        text += f" {measured.plan}"
    return f"{text} It ended early: {measured.refused}" if measured.refused else text


def advice_on(ops: list[OpSentence]) -> list[str]:
    """Return what to do about ops whose savings are too uncertain; none without such an op."""
    return [ADVICE] if any(op.win == UNCERTAIN for op in ops) else []


def experiment_lines(index: ProfileIndex) -> list[str]:
    """Return the headline of an experiment and a line per op; none without an experiment."""
    measured = Measured.from_info(index.profile.info)
    if measured is None:
        return []
    word = device_word(index.profile.info)
    rows = sensitivities(index)[:_LINES] if measured.repeats else []
    found = [op_sentence(row, word) for row in rows]
    return [
        headline_of(measured),
        *(f"{op.name}: {'; '.join(text for text in op[1:] if text)}" for op in found),
        *advice_on(found),
    ]


def wins_nothing(row: Sensitivity) -> bool:
    """Whether an op without any time would save next to nothing, as far as is known."""
    return row.saving is not None and row.saving.ns < MIN_WIN * row.wall_ns


def is_measured(row: Sensitivity) -> bool:
    """Whether the saving of an op has measurements behind it, and not the replay alone."""
    return _doubt(row, _known(row)) is None


def _known(row: Sensitivity) -> list[Side]:
    return [side for side in SIDES if not math.isnan(row.measured[side].value)]


def _win(row: Sensitivity, known: list[Side]) -> str:
    doubt = _doubt(row, known)
    if doubt is not None:
        return doubt
    name, saving = in_backticks(row.op.name, _NAME), row.saving
    if saving is None:
        return row.note or "records are missing, so what it would save is not known"
    if not wins_nothing(row):
        saved = f"{duration(saving.ns)} of {duration(row.wall_ns)} would be saved"
        span = f"{duration(saving.low)} to {duration(saving.high)}"
        if saving.high - saving.low <= _WIDE * row.wall_ns:
            return f"without its time, {saved} ({span})"
        measured_ns = sum(row.measured[side].value * row.op.time_ns(side) for side in known)
        near = duration(int(min(max(measured_ns, saving.low), saving.high)))
        return (
            f"without its time, {span} of {duration(row.wall_ns)} would be saved ({near} if the "
            "wall time follows it as far as measured)"
        )
    least_ns = MIN_WIN * row.wall_ns
    if any(row.measured[side].low * row.op.time_ns(side) >= least_ns for side in known):
        return (
            f"the wall time follows {name}, but without it, other work would soon take as long: "
            f"up to {duration(saving.high)} of {duration(row.wall_ns)} would be saved"
        )
    text = f"a faster {name} wins next to nothing"
    if row.limit is not None:
        text += f": {_LIMITS[row.limit]} is the limit"
    if saving.high >= MIN_WIN * row.wall_ns:
        text += f"; at most {duration(saving.high)} of {duration(row.wall_ns)}"
    return text


def _doubt(row: Sensitivity, known: list[Side]) -> str | None:
    """Return why it is not known what an op would save; None if it is known."""
    if not known:
        text, saving = row.note or "not measured", row.saving
        if saving is None:
            return text
        saved = "next to nothing" if wins_nothing(row) else duration(saving.ns)
        return (
            f"{text}; by the replay alone, {saved} of {duration(row.wall_ns)} would be saved "
            f"({duration(saving.low)} to {duration(saving.high)})"
        )
    if any(row.measured[side].half_width > MAX_WIDTH for side in known):
        return UNCERTAIN
    if row.agrees is not False:
        return None
    pairs = [
        f"{row.replayed[side].value:.2f} ({side})"
        for side in known
        if not math.isnan(row.replayed[side].value)
    ]
    return (
        f"by the recording it should be {', '.join(pairs)}: something that waits is not recorded, "
        "or the machine was busy. What it would save is not known"
    )
