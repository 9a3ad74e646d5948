"""Errors, options, the clock and the columns of the native core."""
