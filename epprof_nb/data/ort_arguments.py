"""Names of the arguments of ONNX Runtime's node events that are stored in columns of the ops."""

from __future__ import annotations

NODE_SIZES = {
    "output_bytes": "output_size",
    "parameter_bytes": "parameter_size",
    "activation_bytes": "activation_size",
}
"""Sizes of a node's outputs and inputs: column to argument."""

NODE_MEMORY = {
    "arena_held_bytes": "mem_arena_held",
    "in_use_bytes": "mem_bytes_in_use",
    "requested_bytes": "mem_bytes_requested_in_use",
    "peak_bytes": "mem_in_use_peak",
    "arena_held_delta_bytes": "mem_arena_held_delta",
    "in_use_delta_bytes": "mem_in_use_delta",
    "requested_delta_bytes": "mem_requested_in_use_delta",
}
"""State of a node's allocator at its end, from ONNX Runtime 1.28 on: column to argument."""
