"""Folders of parts, one per process of a job."""
