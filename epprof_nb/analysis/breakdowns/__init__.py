"""Breakdowns: device and host time by op, line, kernel, stream, path and range."""
