"""The `.epprof` format."""
