"""Messages to the viewer: columns and headers."""
