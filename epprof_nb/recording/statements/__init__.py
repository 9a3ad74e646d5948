"""Statements of profiled cells and functions as ops."""
