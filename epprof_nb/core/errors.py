"""The errors of the package; each message says what happened, why, and what to do next."""

from __future__ import annotations


class EpprofError(Exception):
    """Base of every error that the package raises on its own account."""


class ProfileFileError(EpprofError, ValueError):
    """A file is no profile, is damaged, or needs a newer version of the package."""


class CaptureError(EpprofError, RuntimeError):
    """Recording could not be started, or could not go on."""
