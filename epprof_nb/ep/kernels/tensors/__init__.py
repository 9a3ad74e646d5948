"""Kernels that index, pad, reshape and select."""
