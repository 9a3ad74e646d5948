"""Text formatting, caching and progress helpers that know nothing of profiles."""
