"""Findings on copies and communication: slow, small, repeated or not overlapped."""
