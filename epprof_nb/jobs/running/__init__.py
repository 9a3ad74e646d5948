"""Processes that already run when a cell begins: they listen for it, and record while it runs."""
