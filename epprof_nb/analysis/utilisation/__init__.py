"""Utilisation of devices over time: idle gaps and causes, waits, launches, overlap, transfers."""
