"""A damaged info is refused when it is loaded, or harmless in every view."""

import copy
import itertools
import json

import pytest

from epprof_nb import load
from epprof_nb.analysis.base.processor_use import asleep_ns, load_of
from epprof_nb.cli import main
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.epprof.info_schema import check_info
from epprof_nb.files.epprof.reading_writing import save
from epprof_nb.files.redaction.redacted_columns import redacted
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.renderers.html import page_html
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from tests.helpers.saved_profiles import some

VALUES = [
    None, True, -1, 2**63, 1e400, float("nan"), 0.5, "", "x", "\ud800", [], [None], [[]], {},
    {"a": None}, {"": {}}, [{"device_id": "0"}],
]  # fmt: skip


def whole_info() -> dict:
    info = synthetic_profile(activities=3).info
    info |= {
        "op_places": {"op": {"file": "a.py", "line": 3}},
        "threads": [{"thread_id": 7, "name": "loader_0"}],
        "script": "a.py",
        "onnxruntime_sessions": {"1": "model"},
        "onnxruntime_providers": {"1": ["CUDAExecutionProvider"]},
        "onnxruntime_selected": {"1": {"only": ["Relu"]}},
        "onnxruntime_stretch": [{"session": 1, "runs": 2, "stretch": 1.5}],
        "onnxruntime_runs": [{"session": 1, "runs": 2, "recorded": 2, "learned": 0}],
        "redacted": ["source"],
        "gpu": {"before": {"gpus": []}, "after": {}},
    }
    return info


def paths(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths(value[key], (*path, key))


def with_value(info: dict, path: tuple, value: object) -> dict:
    changed = copy.deepcopy(info)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return changed


def test_what_is_not_refused_is_shown():
    profile, info = synthetic_profile(activities=3), whole_info()
    check_info(info)
    refused = 0
    pages = set()
    for path, value in itertools.product([*paths(info)][1:], VALUES):
        changed = with_value(info, path, value)
        try:
            check_info(changed)
        except ValueError:
            refused += 1
            continue
        profile.info = changed
        try:
            view_model = ViewModel(profile)
            as_text(view_model)
            if path not in pages:  # they take longest
                page_html(view_model).encode()
            pages.add(path)
            redacted(profile, True)
        except Exception as error:
            raise AssertionError(f"{path} = {value!r} was accepted") from error
    assert refused > 300


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("recorded",), {"lost": {"kernel": "3"}}, r"recorded\.lost\.kernel"),
        (("attribution",), {"none": None}, r"attribution\.none"),
        (("profiling_cost",), {"ns": float("inf")}, r"profiling_cost\.ns"),
        (("statement_costs",), {"x": 1}, "statement_costs"),
        (("statement_costs",), {"1.5": 1}, "statement_costs"),
        (("statement_costs",), {"9" * 30: 1}, "statement_costs"),
        (("statement_costs",), {"1": -1}, "statement_costs"),
        (("notes",), ["fine", 3], r"notes\[1\]"),
        (("extra",), json.loads("[" * 100 + "]" * 100), "too deeply"),
    ],
)
def test_a_damaged_info_gives_one_error(path, value, why, tmp_path):
    profile = some()
    profile.info = with_value(profile.info, path, value)
    file = tmp_path / "run.epprof"
    save(profile, file)
    with pytest.raises(ProfileFileError, match=why):
        load(file)


def test_a_load_of_impossible_size_is_left_out():
    info = {"load": {"own_cores": 1e308, "waiting": 0.5, "other_cores": 1e308}}
    check_info(info)
    assert load_of(info) == {"waiting": 0.5}
    assert asleep_ns(info, 1_000) == 0
    profile = some()
    profile.info |= info
    assert page_html(ViewModel(profile))


def test_the_report_names_what_is_damaged(tmp_path):
    from click.testing import CliRunner

    profile = some()
    profile.info["devices"] = [{"device_id": "zero"}]
    save(profile, tmp_path / "run.epprof")
    result = CliRunner().invoke(main, ["report", str(tmp_path / "run.epprof")])
    assert result.exit_code == 1
    assert "devices[0].device_id in the info has the wrong type" in result.output
    assert not (tmp_path / "run.html").exists()
