"""Options of ``epprof run``, as they reach the recording."""

import pytest
from click.testing import CliRunner

from epprof_nb.cli import main


@pytest.mark.parametrize("mode", [None, "off", "auto", "every"])
def test_nodes_to_record_are_an_option_of_the_session(monkeypatch, tmp_path, mode):
    requests = []
    monkeypatch.setattr(
        "epprof_nb.commands.run_script.run", lambda _, __, request: requests.append(request)
    )
    (tmp_path / "job.py").write_text("pass", encoding="utf-8")
    option = ["--ort-nodes", mode] if mode else []
    result = CliRunner().invoke(main, ["run", *option, str(tmp_path / "job.py")])
    assert result.exit_code == 0, result.output
    assert requests[0].options.ort_nodes == mode


def test_an_unknown_mode_of_nodes_is_refused(tmp_path):
    (tmp_path / "job.py").write_text("pass", encoding="utf-8")
    result = CliRunner().invoke(main, ["run", "--ort-nodes", "some", str(tmp_path / "job.py")])
    assert result.exit_code == 2
    assert "'off', 'auto', 'every'" in result.output
