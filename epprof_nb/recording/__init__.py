"""Recording: sources of activities and ops, and the sessions that record them."""
