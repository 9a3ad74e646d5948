"""Maximum times for which a notebook waits for the workers of a cluster."""

ANSWER_S = 5.0
"""Until a worker answers at all. One that is stopped, or whose task holds the GIL, is listed."""

PREPARE_S = 20.0
"""Until a worker that has answered records; its first recording imports what it needs."""

END_S = 60.0
"""Until a worker has waited for its device and written its part."""

GONE_WORKER_S = 2.0
"""Until a worker answers that the scheduler has removed, and that has left no part."""

SEND_S = 600.0
"""Until a worker without the notebook's storage has sent its part."""

CHECK_S = 5.0
"""Between two looks of a worker at the scheduler, whether the client is there."""

LOOK_S = 0.2
"""Between two looks of a worker whether it is being closed: a nanny kills it after 4 s."""

GONE_S = 30.0
"""For how long the client is gone before the worker ends its recording."""

PIECE_BYTES = 4 * 2**20
"""Largest piece of a part that is sent."""

COMPARE_S = 10.0
"""Between two comparisons of a worker's clock with the notebook's clock."""

REMOVE_S = 1.0
"""At the end, for workers that do not answer: they end when they find the plugin removed."""
