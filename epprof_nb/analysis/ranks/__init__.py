"""Analyses across the ranks of a job: collectives, and which rank the others waited for."""
