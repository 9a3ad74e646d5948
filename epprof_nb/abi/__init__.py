"""Versioned layouts of the binary interfaces that are read without their headers, as data."""
