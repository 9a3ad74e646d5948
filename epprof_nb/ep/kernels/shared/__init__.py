"""Checks, axes and precision that kernels of several families share."""
