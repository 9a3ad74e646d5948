"""Messages to the viewer."""
