"""Subcommands of ``epprof``."""
