"""Experiments: designs of repeats with delays, and what the delays say about the ops."""
