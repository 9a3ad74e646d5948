"""Analyses of Python stacks: whose code each frame is, and the work by line and by stack."""
