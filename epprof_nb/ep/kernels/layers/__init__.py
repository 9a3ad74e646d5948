"""Kernels of attention, normalizations, recurrent and fused layers."""
