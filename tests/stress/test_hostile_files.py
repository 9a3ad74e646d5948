"""Damaged files: each is refused with one error, or loads and can be shown."""

import random

import pytest

from epprof_nb import load
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from tests.stress import FACTOR


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "run.epprof"
    synthetic_profile(activities=100).save(path)
    return path.read_bytes()


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 8])):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def spliced(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:start] + rng.randbytes(rng.randrange(64)) + data[end:]


@pytest.mark.parametrize("damage", [flipped, cut, spliced])
def test_a_damaged_file_gives_one_error_or_a_profile(damage, whole, tmp_path):
    rng = random.Random(5)
    path = tmp_path / "damaged.epprof"
    refused = 0
    for _ in range(100 * FACTOR):
        path.write_bytes(damage(whole, rng))
        try:
            profile = load(path, max_bytes=64 * 2**20)
        except ProfileFileError:
            refused += 1
        else:
            as_text(ViewModel(profile))
    assert refused > 50 * FACTOR
