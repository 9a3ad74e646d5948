"""Kinds of recording costs, with the numbers of native/core/recording_costs.h."""

NAMES = ("statements", "ops", "modules", "backward", "launches", "runs")
"""Names of the recorded events, as in ``info["recording_costs"]``."""
STATEMENTS, OPS, MODULES, BACKWARD, LAUNCHES, RUNS = range(len(NAMES))
SUSPENSIONS, INNER_STATEMENTS, FUNCTIONS = range(len(NAMES), len(NAMES) + 3)
"""Parts of the cost of statements: suspensions of generators, statements in functions, and begins
and ends of functions. `STATEMENTS` has the statements outside of functions."""
NAME_OF_KIND = (*NAMES, *[NAMES[STATEMENTS]] * 3)
