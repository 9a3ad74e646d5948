"""Findings on device work: the largest part of it, and work that can be avoided."""
