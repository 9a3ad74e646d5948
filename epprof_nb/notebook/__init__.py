"""The magics, live progress and their output in notebooks."""
