"""Rules: one file per cause that a finding can name."""
