"""The live widget."""
