"""Prefill and decode of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.column_docs import with_columns
from epprof_nb.data.empty_tables import with_note
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.profiles.table_frame import table_frame

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

        Raises
        ------
        ValueError
            If `attribution` is unknown.

        Notes
        -----
        Transformers' ``generate`` and onnxruntime-genai mark generations and phases. For sessions
        of ONNX Runtime they follow from the lengths of the inputs: a generation begins with a call
        whose KV cache is empty, or holds what no other call of the profile has processed. Its calls
        are prefill until one processes a single token. Later calls of up to 16 tokens are decode
        too, such as calls that verify a draft; a longer call begins a generation, such as the next
        turn of a chat. `wall_ns` lasts to the start of the next phase. For the prefill, it is the
        time to the first token, including sampling.

        The profiler slows calls down, most of all calls that it records node by node.
        `unprofiled_tokens_per_s` is the rate without it, from the time of unprofiled calls with
        inputs of the same shapes, else of calls with as many tokens that were not recorded node by
        node.

        Examples
        --------
        >>> prof.by_phase().groupby("phase")["tokens_per_s"].median()  # doctest: +SKIP
        """
        from epprof_nb.analysis.steps.by_phase import phase_table

        frame = table_frame(self, "by_phase", phase_table, attribution=attribution)
        without_cache = frame["past_tokens"] == 0
        alone = len(frame) > 1 and without_cache.all() and (frame["calls"] == 1).all()
        if alone or (without_cache & (frame["phase"] == "decode")).any():
            return with_note(frame, _NO_CACHE)
        return frame
