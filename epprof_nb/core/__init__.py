"""Errors, options, and what several layers share."""
