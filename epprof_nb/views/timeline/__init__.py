"""Lanes, rows and levels of detail of the timeline."""
