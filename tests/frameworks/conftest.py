"""A function of JAX, and values of PyTorch."""

from __future__ import annotations

import pytest


@pytest.fixture
def double():
    """A jitted function that is compiled for four numbers."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def double(values):
        return values * 2

    double(jnp.ones(4)).block_until_ready()
    return double


@pytest.fixture
def values():
    """Four numbers for each of two rows, with gradients."""
    import torch

    return torch.ones(2, 4, requires_grad=True)
