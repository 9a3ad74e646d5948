"""Exporters to the formats of other tools."""
