"""Files: profiles on disk, traces of other tools, exports and redaction."""
