"""Findings on memory that is allocated and freed again and again, and on the garbage collector."""
