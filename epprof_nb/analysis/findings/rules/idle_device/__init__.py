"""Findings on devices that idle because the host works, waits, or loads data."""
