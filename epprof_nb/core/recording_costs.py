"""Kinds of recording costs, with the numbers of native/core/recording_costs.h."""

NAMES = ("statements", "ops", "modules", "backward", "launches")
"""Names of what is recorded, as in ``info["recording_costs"]``."""
STATEMENTS, OPS, MODULES, BACKWARD, LAUNCHES = range(len(NAMES))
