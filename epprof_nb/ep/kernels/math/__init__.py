"""Kernels of arithmetic, products and reductions."""
