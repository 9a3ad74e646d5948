"""Sources of activities, one a module."""
