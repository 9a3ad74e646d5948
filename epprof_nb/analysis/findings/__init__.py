"""Findings: what to change, with gain and evidence."""
