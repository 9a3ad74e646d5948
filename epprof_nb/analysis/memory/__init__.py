"""Memory of GPUs: what holds it, and when."""
