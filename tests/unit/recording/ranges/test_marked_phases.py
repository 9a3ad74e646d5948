"""`phase` marks calls of language models by hand."""

import numpy as np
import pytest

import epprof_nb


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ({"tokens": 0}, "tokens must be at least 1"),
        ({"tokens": 10**30}, "tokens must be at most 2,147,483,647"),
        ({"tokens": 1, "batch": 2**31}, "batch must be at most"),
        ({"tokens": 1, "past_tokens": 2**63}, "past_tokens must be at most"),
        ({"tokens": 1, "past_tokens": -1}, "past_tokens must be at least 0"),
    ],
)
def test_numbers_that_no_model_has_are_refused(numbers, says):
    with pytest.raises(ValueError, match=says):
        epprof_nb.phase("decode", **numbers)


def test_the_greatest_numbers_have_a_row():
    most = 2**31 - 1
    with epprof_nb.profile() as prof, epprof_nb.phase("prefill", most, batch=np.int64(most)):
        pass
    frame = prof.by_phase()
    assert frame["tokens"].tolist() == frame["batch"].tolist() == [most]
    assert frame["tokens_per_s"].item() > most
