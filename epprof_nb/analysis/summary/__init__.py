"""The summary of a profile: the line of numbers above every view, and its facts."""
