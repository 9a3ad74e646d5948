"""Kernels of arithmetic, products, reductions and normalizations."""
