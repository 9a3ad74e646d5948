"""Notes of a profile, apart from those that depend on what ran before in the process."""

from __future__ import annotations


def notes_of(profile):
    """Return the notes without the one that torch.profiler holds CUPTI, as it does with a GPU."""
    return [note for note in profile.info["notes"] if "callbacks are held" not in note]
