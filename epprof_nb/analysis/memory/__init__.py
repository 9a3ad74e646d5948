"""Memory of GPUs: who holds it, and when."""
