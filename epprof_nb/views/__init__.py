"""Views of a profile: the page, the picture, the text, and the live widget."""
