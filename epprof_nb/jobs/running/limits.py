"""Maximum times for which a notebook waits for its child processes."""

ANSWER_S = 2.0
"""Until a child confirms that it has read a message. One that holds the GIL or is stopped cannot;
it is listed with this reason, and the cell runs without it."""

PREPARE_S = 10.0
"""Until a child that has answered can record; its first recording imports what it needs."""

END_S = 30.0
"""Until a child that has answered has waited for its device and written its part."""
