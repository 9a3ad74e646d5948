"""CUDA graphs of the provider's sessions."""
