"""Kinds of recording costs, with the numbers of native/core/recording_costs.h."""

NAMES = ("statements", "ops", "modules", "backward", "launches", "runs")
"""Names of what is recorded, as in ``info["recording_costs"]``."""
STATEMENTS, OPS, MODULES, BACKWARD, LAUNCHES, RUNS = range(len(NAMES))
SUSPENSIONS, INNER_STATEMENTS, FUNCTIONS = range(len(NAMES), len(NAMES) + 3)
"""Parts of what statements take: events that tell when generators are suspended, statements in
functions, and begins and ends of functions. `STATEMENTS` are those outside of functions."""
NAME_OF_KIND = (*NAMES, *[NAMES[STATEMENTS]] * 3)
