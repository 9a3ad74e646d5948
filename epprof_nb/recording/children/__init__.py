"""Child processes: how an order to record reaches them, and what they record."""
