"""Findings on launches: too many, or captured in graphs that are hardly replayed."""
