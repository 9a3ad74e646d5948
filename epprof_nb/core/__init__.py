"""Errors, options, clocks and native columns."""
