"""Static forms of a view: HTML, PNG and text."""
