"""Explanation of out-of-memory errors: the request, the free memory, and what holds the rest."""
