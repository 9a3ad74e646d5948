"""Whose code a file is: the order of the rules, and what the user names."""

import pytest

from epprof_nb.analysis.stacks.ownership import Ownership

OWNERS = Ownership(
    machinery=("/opt/epprof_nb",),
    library=("/usr/lib/python3.11", "/home/ada/code/.venv/bin"),
    own=("/home/ada/code", "/src/editable"),
)


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("/home/ada/code/train.py", "own"),
        ("/home/ada/code/models/gpt.py", "own"),
        ("/home/ada/codeshop/train.py", "library"),  # no folder above it is named
        ("/src/editable/pkg/a.py", "own"),
        ("/usr/lib/python3.11/queue.py", "library"),
        ("/home/ada/code/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py", "library"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "library"),
        ("/home/ada/code/.venv/bin/accelerate", "library"),
        ("/tmp/torchinductor_ada/ab/cab.py", "library"),
        ("<string>", "library"),
        ("<dynamic-code>", "own"),
        ("<frozen importlib._bootstrap>", "library"),
        ("<frozen runpy>", "machinery"),
        ("/usr/lib/python3.11/runpy.py", "machinery"),
        ("/x/site-packages/IPython/core/interactiveshell.py", "machinery"),
        ("/x/site-packages/ipykernel/kernelapp.py", "machinery"),
        ("/x/site-packages/ipykernel_launcher.py", "machinery"),
        ("/opt/epprof_nb/host/launches.py", "machinery"),
        ("/tmp/ipykernel_4711/1234567890.py", "cell"),
        ("<ipython-input-12-0a1b2c3d4e5f>", "cell"),
        ("In[3]", "cell"),
        ("/elsewhere/a.py", "library"),
    ],
)
def test_each_file_has_the_owner_of_the_first_rule_that_fits(file, owner):
    assert OWNERS.of(file) == owner


def test_what_the_user_names_comes_first_and_the_longest_path_decides():
    chosen = Ownership(
        chosen_own=("/x/site-packages/transformers", "/home/ada/code/vendor/mine.py"),
        chosen_library=("/home/ada/code/vendor", "/x/site-packages/transformers/utils"),
        own=("/home/ada/code",),
    )
    assert chosen.of("/x/site-packages/transformers/trainer.py") == "own"
    assert chosen.of("/x/site-packages/transformers/utils/hub.py") == "library"
    assert chosen.of("/home/ada/code/vendor/nn.py") == "library"
    assert chosen.of("/home/ada/code/vendor/mine.py") == "own"
    assert chosen.of("/home/ada/code/train.py") == "own"
