"""Kernels of attention, recurrent and fused layers."""
