"""Lanes, rows and level of detail of the timeline."""
