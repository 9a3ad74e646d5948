"""Notes on work of CUDA graphs without the op that launched or captured it."""

from epprof_nb.recording.session.graph_notes import notes_on_graphs
from tests.helpers.tiny import kernel, profile


def notes(*kernels):
    return list(notes_on_graphs(profile([], kernels).tables["activities"]))


def of_graph(capture_op_id=1, correlation_id=7, graph_id=1):
    return kernel(
        0, 10, 1, graph_id=graph_id, capture_op_id=capture_op_id, correlation_id=correlation_id
    )


def test_a_profile_without_graphs_has_none():
    assert notes() == notes(kernel(0, 10, correlation_id=0)) == []


def test_a_graph_that_is_known_has_none():
    assert notes(of_graph(), of_graph()) == []


def test_a_graph_captured_outside_of_profiles_has_none():
    assert notes(of_graph(), of_graph(-1, graph_id=2), of_graph(-1, graph_id=2)) == []


def test_work_without_a_launch_is_counted():
    (note,) = notes(of_graph(), of_graph(correlation_id=0), of_graph(correlation_id=0))
    assert note.startswith("2 activities of CUDA graphs without an op: ")


def test_nodes_of_unknown_origin_are_counted():
    (note,) = notes(of_graph(), of_graph(-1), of_graph(-1, graph_id=2))
    assert note.startswith("1 activity of CUDA graphs without a capture_op_id")
