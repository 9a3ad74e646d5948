"""Answers to the viewer's questions about a profile."""
