"""GPUs among the devices of a profile, also of one that an older version recorded."""

import pickle

import pytest

from epprof_nb.analysis.base.devices import device_labels, device_word, gpu_ids, used_gpu
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.data.profile_data import ProfileData
from tests.helpers.tiny import kernel, profile


@pytest.mark.parametrize("kind", ["gpu", "cuda"])
def test_a_gpu_counts_as_one_by_its_kind_of_today_and_in_older_pickles(kind):
    devices = [{"device_id": 0, "kind": kind}, {"device_id": 1, "kind": kind}]
    made = profile(activities=[kernel(0, 10)], info={"devices": devices})
    data = ProfileData(made.tables, made.info, made.sources)
    info = pickle.loads(pickle.dumps(data)).info
    assert gpu_ids(info) == {0, 1}
    assert device_word(info) == "GPU"
    assert device_labels(info, [0, 1000]) == {0: "GPU 0", 1000: "GPU 1000"}
    assert used_gpu(ProfileIndex(data))


def test_the_host_device_is_no_gpu():
    made = profile(activities=[kernel(0, 10)], info={"devices": [{"device_id": 0, "kind": "host"}]})
    data = ProfileData(made.tables, made.info, made.sources)
    assert not used_gpu(ProfileIndex(data))
    assert device_word(data.info) == "device"
