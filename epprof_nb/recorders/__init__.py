"""Recorders: sources of activities, one per module."""
