"""Kernels that run on CUDA devices as source code of CUDA."""
