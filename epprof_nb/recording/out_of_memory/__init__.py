"""Explanation of out-of-memory errors: the request, the free memory, and who holds the rest."""
