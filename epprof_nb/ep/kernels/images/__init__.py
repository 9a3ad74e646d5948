"""Kernels of convolutions, pooling and resizing."""
