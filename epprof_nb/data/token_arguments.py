"""Arguments of the ops that called a language model."""

from __future__ import annotations

CALL_ARGUMENTS = ("batch", "tokens", "past_tokens", "cache_bytes", "turn", "decode")
"""Sequences; tokens of each that the call processed; tokens of each in the KV cache before it; size
of the cache that it was given; number of the generation in the process; and 1 for a decode step, 0
for the prefill. Unknown ones are missing."""
