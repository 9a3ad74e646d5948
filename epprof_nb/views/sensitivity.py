"""The result of an experiment, shown below a cell or printed after a script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.experiments.measurements_in_info import Measured
from epprof_nb.analysis.experiments.sensitivity import sensitivities, sensitivity_table
from epprof_nb.analysis.experiments.sentences import OpSentence, advice_on, headline_of, op_sentence
from epprof_nb.util.cached import cached_property
from epprof_nb.util.format import shorten
from epprof_nb.util.html import to_base64, with_code
from epprof_nb.util.printable import printable
from epprof_nb.util.text_controls import with_visible_controls
from epprof_nb.views.renderers.sensitivity_picture import draw

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.analysis.experiments.sensitivity import Sensitivity
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.renderers.svg_drawing import Drawing

_ROWS = 12
_CELL = "padding:2px 14px 2px 0;text-align:left;background:none"


class SensitivityView:
    """Sensitivities and savings of the ops of an experiment.

    Parameters
    ----------
    profile
        A profile whose info has an experiment.
    """

    def __init__(self, profile: ProfileData) -> None:
        self._profile = profile

    @cached_property
    def _measured(self) -> Measured:
        return Measured.from_info(self._profile.info) or Measured(refused="none was requested.")

    @cached_property
    def _rows(self) -> list[Sensitivity]:
        """The ops to show; empty without measurements."""
        if not self._measured.repeats:
            return []
        return sensitivities(index_of(self._profile))[:_ROWS]

    @cached_property
    def _sentences(self) -> list[OpSentence]:
        word = device_word(self._profile.info)
        return [op_sentence(row, word) for row in self._rows]

    @cached_property
    def _drawing(self) -> Drawing | None:
        """The picture; None if no saving is known."""
        rows = [row for row in self._rows if row.saving is not None]
        return draw(rows) if rows else None

    @cached_property
    def headline(self) -> str:
        """The number of repeats, or the reason why nothing was measured."""
        return headline_of(self._measured)

    def to_frame(self) -> pd.DataFrame:
        """Return the table of `epprof_nb.Profile.sensitivity`."""
        from epprof_nb.analysis.experiments.sensitivity_frame import SensitivityFrame

        return SensitivityFrame(sensitivity_table(index_of(self._profile)).to_frame())

    def as_text(self) -> str:
        """Return the headline, and a line per op."""
        columns = [
            [shorten(found.name, 32) for found in self._sentences],
            [found.shares for found in self._sentences],
            [found.sensitivities for found in self._sentences],
        ]
        widths = [max(map(len, column), default=0) for column in columns]
        lines = [self.headline]
        for *cells, found in zip(*columns, self._sentences, strict=True):
            start = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            lines.append(f"  {start}  {found.win}".rstrip())
        lines += [f"  {text}" for text in advice_on(self._sentences)]
        return printable("\n".join(lines))

    def as_html(self) -> str:
        """Return the picture, and a row per op."""
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="{_CELL}">{cell}</td>'
                for cell in (
                    f"<code>{escape(shorten(found.name, 48))}</code>",
                    escape(found.shares), escape(found.sensitivities), with_code(found.win),
                )
            )
            + "</tr>"
            for found in self._sentences
        )  # fmt: skip
        picture = "" if self._drawing is None else self._drawing.svg()
        headings = "".join(
            f'<th style="{_CELL};font-weight:normal;opacity:.75">{text}</th>'
            for text in ("op", "time", "sensitivity", "without its time")
        )
        advice = "".join(
            f'<p style="margin:.3em 0">{escape(text)}</p>' for text in advice_on(self._sentences)
        )
        table = (
            '<table style="border-collapse:collapse;font:inherit;color:inherit;'
            f'font-variant-numeric:tabular-nums"><thead><tr>{headings}</tr></thead>'
            f"<tbody>{body}</tbody></table>"
        )
        return with_visible_controls(
            '<div style="font:13px/1.5 system-ui,sans-serif;margin:4px 12px">'
            f'<p style="margin:.3em 0">{escape(self.headline)}</p>{picture}'
            f"{table if body else ''}{advice}</div>"
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.as_text(), "text/html": self.as_html()}
        if self._drawing is not None:
            bundle["image/png"] = to_base64(self._drawing.png())
        return bundle

    def __repr__(self) -> str:
        return self.as_text()
