"""Delays at the ends of ops, in repeats that are not recorded."""
