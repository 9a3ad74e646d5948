"""The magics and what they show in a notebook."""
