"""Redaction: copies of profiles without source, paths, host names or shapes."""
