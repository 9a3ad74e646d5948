"""The end of a recorded process, at which its profile is saved."""
