"""Queries of the viewer about a profile."""
