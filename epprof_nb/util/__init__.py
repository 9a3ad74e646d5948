"""Text formatting, caching and progress helpers that do not depend on profiles."""
