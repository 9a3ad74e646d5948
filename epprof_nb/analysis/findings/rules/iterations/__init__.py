"""Findings on iterations that take longer than others."""
