"""Findings on code that is compiled again and again."""
