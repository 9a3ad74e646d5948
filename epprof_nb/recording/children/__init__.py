"""Child processes: how an order to record reaches them, and how they end."""
