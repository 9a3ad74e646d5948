"""Arguments of the ops that called a language model."""

from __future__ import annotations

CALL_ARGUMENTS = ("batch", "tokens", "past_tokens", "cache_bytes")
"""Sequences; tokens of each that the call processed; tokens of each in the KV cache before it; and
size of the cache that it was given. Unknown ones are missing."""
