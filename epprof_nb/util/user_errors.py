"""Errors of the objects of users while this package reads them."""

USER_ERRORS = (Exception, SystemExit)
"""Errors that an attribute or a method of any object may raise and that are not meant to end the
program. Ctrl-C is."""
