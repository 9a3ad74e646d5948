"""Models and functions of the user's namespace, which names their modules."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def named(monkeypatch):
    """A function that makes objects variables of the user."""

    def name(**objects):
        for variable, value in objects.items():
            monkeypatch.setattr(sys.modules["__main__"], variable, value, raising=False)

    return name
