"""Work in the bodies of conditional nodes belongs to the replay that it ran in."""

from epprof_nb.recording.session.conditional_bodies import with_launches
from tests.helpers.tiny import kernel, profile


def correlations(*rows):
    """Correlation ids of kernels of a graph, given as start, end and correlation id."""
    made = [kernel(start, end, 1, correlation_id=c, graph_id=1) for start, end, c in rows]
    outside = kernel(0, 1000, 1, correlation_id=0)
    table = profile([], [outside, *made]).tables["activities"]
    found = with_launches(table)
    outside = found["graph_id"] == -1
    assert found["correlation_id"][outside].tolist() == [0]
    return found["correlation_id"][~outside].tolist()


def test_a_body_belongs_to_the_replay_around_it():
    replays = [(10, 20, 7), (22, 24, 0), (25, 26, 0), (30, 40, 7),
               (50, 60, 9), (50, 55, 0), (61, 63, 0), (65, 70, 9)]  # fmt: skip
    assert correlations(*replays) == [7, 7, 7, 7, 9, 9, 9, 9]


def test_a_body_between_two_replays_may_be_of_either():
    assert correlations((10, 20, 7), (22, 24, 0), (30, 40, 9)) == [7, 0, 9]


def test_the_only_replay_has_every_body():
    assert correlations((5, 8, 0), (10, 20, 7), (22, 24, 0)) == [7, 7, 7]


def test_a_graph_of_bodies_alone_has_no_known_launch():
    assert correlations((5, 8, 0), (10, 20, 0)) == [0, 0]


def test_each_graph_has_its_own_replays():
    rows = [
        kernel(10, 90, 1, correlation_id=3, graph_id=1),
        kernel(20, 30, 1, correlation_id=4, graph_id=2),
        kernel(40, 45, 1, correlation_id=0, graph_id=2),
        kernel(50, 55, 1, correlation_id=0, graph_id=1),
    ]
    found = with_launches(profile([], rows).tables["activities"])
    assert found["correlation_id"].tolist() == [3, 4, 4, 3]
