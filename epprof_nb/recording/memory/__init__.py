"""Memory of GPUs: what the allocators of libraries hold, block by block."""
