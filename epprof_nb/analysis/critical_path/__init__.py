"""The critical path of a profile."""
