"""Peaks of devices and of their links: their values in a profile, and their measurement."""
