"""Matrix products of the provider's kernels, by cuBLAS and cuBLASLt."""
