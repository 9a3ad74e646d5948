"""Idle time of devices: its gaps and causes, waits, launches and transfers."""
