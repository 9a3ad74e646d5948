"""Prefill and decode of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from epprof_nb.data.empty_tables import with_note
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import with_columns
from epprof_nb.profiles.table_frame import table_frame
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    import pandas as pd

_NO_CACHE = (
    "Some calls do not continue the KV cache of the call before. If they should, pass the cache on "
    "(`use_cache=True` in transformers): without it, each call processes the whole sequence."
)
_LEFT_OUT = (
    "No row has {}: the KV cache fits several generations, which may alternate. Tell them apart: "
    '`with epprof_nb.phase("decode", 1, model="first"):`.'
)


class GenerationTables(ProfileData):
    """Table of the phases of language models."""

    @with_columns("by_phase")
    def by_phase(self, *, attribution: Literal["launch", "capture"] = "launch") -> pd.DataFrame:
        """Time and rate of prefill and decode in each generation of language models.

        It counts calls of PyTorch's modules and of ONNX Runtime's sessions that get tokens and a KV
        cache, the steps of onnxruntime-genai, and the ranges of `epprof_nb.phase`.

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
        `epprof_nb.phase`, ``generate`` of transformers and onnxruntime-genai mark generations and
        phases. Otherwise they follow from the shapes of the inputs: a generation begins with a call
        whose KV cache is empty, or holds tokens that no other call of the profile has processed.
        Its calls are prefill until one processes a single token, or several proposals of a draft
        model, some of which are rejected. Later calls of up to 16 tokens are decode, too; a longer
        call begins a generation, such as the next turn of a chat. `wall_ns` lasts to the start of
        the next phase. For the prefill, it is the time to the first token, including sampling.

        The sequences of a cache may be reordered, some of them may end, and its oldest tokens may
        be cut: then the calls of one model on one thread belong together if the lengths fit. Calls
        that may continue several generations are in no row, and a note counts them.

        Of nested modules, the outermost call with a cache counts, whatever the names of its
        arguments. Calls with the same cache belong together. The profiler reads nothing from a
        device, so `past_tokens` is missing if the cache is a buffer that may already hold tokens.
        If the arguments have no cache, mark the calls with `epprof_nb.phase`.

        The profiler slows calls down, especially calls that it records node by node.
        `unprofiled_tokens_per_s` is the rate without it. It comes from unprofiled calls with inputs
        of the same shapes, or else from calls with as many tokens that were not recorded node by
        node. Only runs of ONNX Runtime's sessions are timed outside of profiles. The rate is NaN if
        it is not known to about 20 %: calls below 0.2 ms, few calls, or times that scatter. For
        other calls, it follows from the time that profiling added (see ``info["added_ns"]``), or is
        NaN if that time is unknown.

        Examples
        --------
        >>> prof.by_phase().groupby("phase")["tokens_per_s"].median()  # doctest: +SKIP
        """
        from epprof_nb.analysis.base.index import index_of
        from epprof_nb.analysis.steps.by_phase import left_out_calls, phase_table

        frame = table_frame(self, "by_phase", phase_table, attribution=attribution)
        if left_out := left_out_calls(index_of(self)):
            return with_note(frame, _LEFT_OUT.format(plural(left_out, "call")))
        without_cache = (frame["past_tokens"] == 0).fillna(False)  # noqa: FBT003
        alone = len(frame) > 1 and without_cache.all() and (frame["calls"] == 1).all()
        if alone or (without_cache & (frame["phase"] == "decode")).any():
            return with_note(frame, _NO_CACHE)
        return frame
