"""Analyses: pure functions, tables in, tables out."""
