"""Prefill and decode of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.column_docs import with_columns
from epprof_nb.data.empty_tables import explained, with_note
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    import pandas as pd

_NO_CACHE = (
    "Some calls do not continue the KV cache of the call before. If they should, pass the cache on "
    "(`use_cache=True` in transformers): without it, each call processes the whole sequence."
)


class GenerationTables(ProfileData):
    """Table of the phases of language models."""

    @with_columns("by_phase")
    def by_phase(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Time and rate of prefill and decode in each generation of language models.

        The lengths come from the inputs of ONNX Runtime sessions with a KV cache, the steps of
        onnxruntime-genai, and ``generate`` of transformers.

        Parameters
        ----------
        attribution
            See `by_op`.

        Returns
        -------
        frame
            {columns}

        Examples
        --------
        >>> prof.by_phase().groupby("phase")["tokens_per_s"].median()  # doctest: +SKIP
        """
        from epprof_nb.analysis.steps.by_phase import by_phase

        frame = explained(self, "by_phase", by_phase(self, attribution=attribution))
        without_cache = frame["past_tokens"] == 0
        alone = len(frame) > 1 and without_cache.all() and (frame["calls"] == 1).all()
        if alone or (without_cache & (frame["phase"] == "decode")).any():
            return with_note(frame, _NO_CACHE)
        return frame
