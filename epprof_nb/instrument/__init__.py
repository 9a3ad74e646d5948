"""Statements of cells and named ranges as ops."""
