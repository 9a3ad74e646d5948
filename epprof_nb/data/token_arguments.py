"""Arguments of the ops that called a language model."""

from __future__ import annotations

PHASES = ("prefill", "decode")
"""Phases of a call of a language model, as `epprof_nb.phase` marks and ``by_phase`` names them."""
CALL_ARGUMENTS = ("batch", "tokens", "past_tokens", "cache_bytes", "turn", "decode")
"""Number of sequences; processed tokens of each; tokens of each in the KV cache before the call;
size of the cache passed to it; number of the generation in the process; and 1 for a decode step, 0
for the prefill. Unknown values are missing. Without the last one, the number before it belongs to
the cache."""

MAX_DRAFT = 16
"""Maximum number of tokens of a decode step, which may verify the proposals of another model."""
