"""Exceptions of the package. Messages give the event, its cause, and a remedy."""

from __future__ import annotations


class EpprofError(Exception):
    """Base class of the package's own exceptions."""


class ProfileFileError(EpprofError, ValueError):
    """A file is not a profile, is damaged, or needs a newer version of the package."""


class CaptureError(EpprofError, RuntimeError):
    """Recording could not be started or continued."""


class KernelError(EpprofError, ValueError):
    """A Python kernel is defined wrongly, or cannot be used in this way."""


class ExperimentError(EpprofError, RuntimeError):
    """An experiment was not started, or ended early: the message says why."""
