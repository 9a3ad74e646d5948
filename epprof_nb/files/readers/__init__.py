"""Readers of traces that other tools wrote."""
