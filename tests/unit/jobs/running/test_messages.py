"""Messages over a socket, from friends and strangers."""

import json
import os
import socket

import pytest

from epprof_nb.jobs.running.messages import MAX_BYTES, Channel


@pytest.fixture
def pair():
    ends = [Channel(end) for end in socket.socketpair()]
    for end in ends:
        end.connection.settimeout(60)
    yield ends
    for end in ends:
        end.close()


def test_messages_arrive_in_order_also_in_pieces(pair):
    sender, receiver = pair
    line = json.dumps({"do": "begin", "text": "é\n"}).encode()
    sender.connection.sendall(line[:5])
    assert receiver.receive() == []
    sender.connection.sendall(line[5:] + b"\n" + line + b"\n" + line[:3])
    assert receiver.receive() == [{"do": "begin", "text": "é\n"}] * 2
    sender.connection.sendall(line[3:] + b"\n")
    assert receiver.receive() == [{"do": "begin", "text": "é\n"}]
    assert not receiver.is_closed


def test_the_peer_is_known_by_its_ids(pair):
    assert pair[0].peer() == (os.getpid(), os.geteuid())


def test_an_end_is_noticed_by_both_sides(pair):
    sender, receiver = pair
    sender.close()
    assert receiver.receive() == []
    assert receiver.is_closed
    receiver.send({"do": "end"})
    assert receiver.is_closed


@pytest.mark.parametrize("data", [b"no JSON\n", b"[1]\n", b"\xff\n", b"[" * 100_000 + b"\n"])
def test_what_is_no_message_ends_the_connection(pair, data):
    sender, receiver = pair
    sender.connection.sendall(data)
    messages = []
    while not receiver.is_closed:  # a long line arrives in pieces
        messages += receiver.receive()
    assert messages == []


def test_a_line_without_end_is_refused(pair):
    sender, receiver = pair
    sent = 0
    while not receiver.is_closed:
        sender.connection.sendall(b"x" * 1000)
        sent += 1000
        receiver.receive()
    assert sent <= MAX_BYTES + 66_000
