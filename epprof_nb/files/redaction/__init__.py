"""Copies of profiles without names, paths and sources, to share."""
