"""CUDA C++ of the kernels in Python, and what its launches need."""
