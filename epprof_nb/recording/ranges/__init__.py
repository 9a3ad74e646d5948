"""Named ranges as ops."""
