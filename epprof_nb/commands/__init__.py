"""The subcommands of ``epprof``."""
