"""Foundations of the analyses: the index of a profile, and measures that they share."""
