"""Findings on the work of the host in profiles without device work, and on imports."""
