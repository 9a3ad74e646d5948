"""Redacted copies reveal nothing, in any form in which a profile can be shared."""

from __future__ import annotations

import base64
import io
import json
import re
import socket
import zipfile
import zlib

import numpy as np
import pytest
from click.testing import CliRunner

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import TABLES
from epprof_nb.data.table import Table
from epprof_nb.files.epprof import reading_writing as epprof
from epprof_nb.files.redaction.redacted_columns import PARTS, redacted
from epprof_nb.files.redaction.text_filter import Filter
from tests.helpers import tiny
from tests.helpers.memory_blocks import block, profile_of
from tests.helpers.traces import TRACES
from tests.helpers.walked_stacks import stack_rows, with_stacks

MS = 1_000_000

SOURCE_SECRETS = (
    "hidden_model", "hidden_argument", "hidden_comment", "hidden_quote", "hidden_function",
)  # fmt: skip
PATH_SECRETS = (
    "pathone", "pathtwo", "paththree", "pathfour", "pathfive", "pathsix", "path seven",
    "patheight", "pathnine", "path ten", "patheleven", "pathtwelve", "path thirteen",
)  # fmt: skip
HOST_SECRETS = (
    "hostone", "hosttwo", "10.20.30.40", "userone", "usertwo", "beefbeef", "fe80::c0de", "d00d",
)  # fmt: skip
SHAPE_SECRETS = ("4099", "4111", "4127", "4129", "4133", "4139", "4153", "4157", "4159")
SECRETS = {
    "source": SOURCE_SECRETS,
    "paths": PATH_SECRETS,
    "hosts": HOST_SECRETS,
    "shapes": SHAPE_SECRETS,
}
CELL = """\
%%gpuprofile prof --save /data/pathone/run.epprof
x = load("pathtwo/weights.pt")  # hidden_comment of usertwo@hosttwo.example.com
y = hidden_model(x).reshape(4099, 17)
"""


def secretive():
    """A profile that contains secrets in all possible places."""
    ops = [
        tiny.op(1, "In[1]", 0, 100 * MS, op_type="cell", category="cell"),
        tiny.op(2, 'x = load("pathtwo/weights.pt")', 1 * MS, 40 * MS, 1, op_type="line",
                category="cell", cell="In[1]", line=2),
        tiny.op(3, "y = hidden_model(x).reshape(4099, 17)", 41 * MS, 90 * MS, 1, op_type="line",
                category="cell", cell="In[1]", line=3),
        tiny.op(4, "read /srv/paththree/part.bin from hostone.cluster", 42 * MS, 60 * MS, 3,
                category="user", args={"file": "/srv/pathfour", "shape": [4111, 3],
                                       "what": "hidden_argument", "on": "10.20.30.40"}),
        tiny.op(5, "/encoder/MatMul", 61 * MS, 80 * MS, 3, category="node", op_type="MatMul",
                input_shapes="float[4127,8]", output_shapes="float[4127,16]",
                output_bytes=4157, in_use_delta_bytes=4159),
        tiny.op(6, "patheight/net.py(4): forward", 81 * MS, 84 * MS, 3, category="python",
                op_type="function"),
        tiny.op(7, "pathnine.py(12): main, on [2001:db8::d00d:1]", 82 * MS, 83 * MS, 6,
                category="python", op_type="function"),
        tiny.op(8, "patheleven.py", 90 * MS, 99 * MS, op_type="cell", category="cell"),
        tiny.op(9, "x = 1", 91 * MS, 92 * MS, 8, op_type="line", category="cell",
                cell="patheleven.py", line=1),
    ]  # fmt: skip
    activities = [
        tiny.kernel(10 * MS, 30 * MS, 2, name="gemm float[4129,4] /build/pathfive/k.cu",
                    grid_x=4133, grid_y=1, grid_z=1, block_x=4139, block_y=1, block_z=1),
        tiny.activity("memcpy", 45 * MS, 55 * MS, 4, name="HtoD", bytes=1024),
        tiny.kernel(62 * MS, 79 * MS, 5, name="gemm_128x64_tn"),
    ]  # fmt: skip
    info = {
        "wall_ns": 100 * MS,
        "cell": "In[1]",
        "host": "hostone",
        "started_by": {"user_name": "userone", "cwd": "path seven"},
        "devices": [{"device_id": 0, "name": "GPU", "kind": "gpu", "uuid": "GPU-beefbeef-1"}],
        "gpu": {"before": {"gpus": [{"name": "GPU", "pci_bus_id": "beefbeef"}]}, "after": {}},
        "versions": {"cupti_library": "/usr/pathsix/libcupti.so.13", "python": "3.12.1"},
        "onnxruntime_sessions": {
            "1": "models/pathsix/net.onnx",
            "2": "the path ten.onnx",
            "3": "pathtwelve.ort",
        },
        "memory": {
            "pools": [
                {
                    "pool": "ONNX Runtime path thirteen.onnx",
                    "device_id": 0,
                    "held_bytes": 9,
                    "in_use_bytes": 8,
                    "held_before_bytes": 9,
                    "note": "",
                },
            ]
        },
        "script": "patheleven.py",
        "threads": [{"thread_id": 1, "name": "Thread-1 (hidden_function)"}],
        "notes": [
            "y = hidden_model(x).reshape(4099, 17) was slow (hidden_quote is in it no more).",
            "Read /home/userone/x.txt at http://hosttwo.example.com:80/a; shape (4153, 2).",
            "the path ten.onnx was slow. Close pathtwelve.ort. Connected to fe80::c0de%eth0.",
        ],
        "error": None,
    }
    quote = {"In[1]": CELL + "z = hidden_quote(1)\n", "patheleven.py": "x = 1\n"}
    info["notes"][0] = info["notes"][0].replace("hidden_quote", "z = hidden_quote(1)")
    return tiny.profile(ops, activities, info=info, sources=quote)


def _readable(page):
    """A page without base64: four digits can occur in its compressed viewer by chance."""
    return re.sub("[A-Za-z0-9+/=]{1000,}", "", page)


def _page_bytes(path):
    """A page, and its unpacked payload."""
    text = path.read_text()
    (payload,) = re.findall(r'id="epprof-payload">([^<]+)<', text)
    return _readable(text).encode() + zlib.decompress(base64.b64decode(payload))


def _file_bytes(path):
    """Everything in an .epprof file, tables as text."""
    prof = epprof_nb.load(path)
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        raw = b"".join(archive.read(name) for name in archive.namelist())
    tables = "".join(table.to_frame().to_csv() for table in prof.tables.values())
    texts = [
        category
        for schema in TABLES
        for column in schema.columns
        if column.kind in ("name", "args")
        for category in prof.tables[schema.name].names(column.name).categories
    ]
    return raw + (tables + json.dumps(texts) + json.dumps(prof.info)).encode()


def _shared(profile, tmp_path, redact):
    """The bytes of every form in which a profile can be shared."""
    profile.to_html(tmp_path / "page.html", redact=redact)
    profile.save(tmp_path / "run.epprof", redact=redact)
    profile.to_chrome(tmp_path / "trace.json", redact=redact)
    profile.to_speedscope(tmp_path / "run.speedscope.json", redact=redact)
    profile.to_perfetto(tmp_path / "run.pftrace", redact=redact)
    bundle = profile.redacted(redact).timeline().mimebundle()
    return {
        "page": _page_bytes(tmp_path / "page.html"),
        "file": _file_bytes(tmp_path / "run.epprof"),
        "trace": (tmp_path / "trace.json").read_bytes(),
        "Perfetto trace": (tmp_path / "run.pftrace").read_bytes(),
        "flame graph": (tmp_path / "run.speedscope.json").read_bytes(),
        "summary": profile.redacted(redact).summary().encode(),
        "output": (_readable(bundle["text/html"]) + bundle["text/plain"]).encode(),
    }


def test_the_secrets_are_there_until_they_are_redacted(tmp_path):
    everything = b"".join(_shared(secretive(), tmp_path, False).values())
    for secrets in SECRETS.values():
        for secret in secrets:
            assert secret.encode() in everything, secret


@pytest.mark.parametrize("redact", [True, *PARTS])
def test_nothing_redacted_survives_in_any_form(tmp_path, redact):
    forms = _shared(secretive(), tmp_path, redact)
    for part in PARTS if redact is True else (redact,):
        for secret in SECRETS[part]:
            for form, data in forms.items():
                assert secret.encode() not in data, (secret, form)


CANARY = (
    "see /srv/pathone/x, pathtwo/y.py(3): f or pathfour.onnx at fe80::c0de by ::ffff:10.20.30.40"
)


@pytest.mark.parametrize("schema", TABLES, ids=lambda schema: schema.name)
def test_no_column_of_no_table_keeps_a_path_or_host(schema, tmp_path):
    prof = epprof_nb.testing.synthetic_profile(activities=100)
    rows = np.ones(4, np.int64)
    columns = {column.name: rows for column in schema.columns if column.kind != "bool"}
    columns |= {column.name: rows > 0 for column in schema.columns if column.kind == "bool"}
    columns |= {column.name: -rows for column in schema.columns if column.kind == "row"}
    if schema.name == "stacks":
        columns["stack_id"] = np.arange(4)
    for column in schema.columns:
        if column.kind in ("name", "args"):
            text = json.dumps({CANARY: [CANARY]}) if column.kind == "args" else CANARY
            columns[column.name] = CategoryColumn.constant(text, 4)
    prof.tables[schema.name] = Table(schema, columns)
    epprof.save(redacted(prof, ["paths", "hosts"]), tmp_path / "run.epprof")
    data = _file_bytes(tmp_path / "run.epprof")
    for canary in ("pathone", "pathtwo", "pathfour", "c0de", "10.20.30.40"):
        assert canary.encode() not in data


def test_no_part_of_the_info_keeps_a_path_or_host():
    nested = {"a": [CANARY, {CANARY: (CANARY,)}], CANARY: {"b": {"c": [[CANARY]]}}}
    prof = redacted(tiny.profile(info={"notes": [CANARY], **nested}, sources={CANARY: CANARY}))
    text = repr((prof.info, prof.sources))
    for canary in ("pathone", "pathtwo", "pathfour", "c0de", "10.20.30.40"):
        assert canary not in text


def test_a_trace_with_stacks_keeps_no_file_of_its_functions():
    prof = epprof_nb.read_trace(next(TRACES.glob("kineto_stacks*")))
    assert ".py(" in prof.summary(max_chars=10**6)
    after = prof.redacted()
    texts = [*after.tables["ops"].names("name").categories, after.summary(max_chars=10**6)]
    assert not [text for text in texts if re.search(r"\.py\b", text)]
    assert any(text.endswith("): _call_impl") for text in texts)
    assert after.by_op()["self_host_ns"].sum() == prof.by_op()["self_host_ns"].sum()


def test_the_copy_keeps_times_counts_and_lines(tmp_path):
    before, after = secretive(), secretive().redacted()
    for name in ("start_ns", "end_ns", "op_id"):
        assert (before.tables["activities"][name] == after.tables["activities"][name]).all()
    assert after.by_op()["device_ns"].sum() == before.by_op()["device_ns"].sum()
    assert after.ops["name"].tolist() == [
        "In[1]", "line 2", "line 3", "read (path) from (host)", "/encoder/MatMul",
        "(path)(4): forward", "(path)(12): main, on [(host)]", "(path)", "line 1",
    ]  # fmt: skip
    assert after.by_line()["line"].tolist() == before.by_line()["line"].tolist()
    assert after.by_line()["source"].tolist() == ["line 2", "line 3", "line 1"]
    assert "gemm_128x64_tn" in after.activities["name"].tolist()
    assert len(after.sources["In[1]"].splitlines()) == len(before.sources["In[1]"].splitlines())


def test_the_copy_says_what_it_lacks_and_the_profile_stays(tmp_path):
    before = secretive()
    after = before.redacted(["paths", "source"])
    assert after.info["redacted"] == ["source", "paths"]
    assert "Removed from this copy: source, paths." in after.info["notes"]
    assert "redacted" not in before.info
    assert "hidden_model" in before.sources["In[1]"]
    assert before.redacted(False) is before
    assert after.redacted("hosts").info["redacted"] == ["hosts", "source", "paths"]


def test_an_unknown_part_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match=r"'names': choose from source, paths, hosts, shapes"):
        redacted(secretive(), "names")


def test_an_empty_profile_can_be_redacted(tmp_path):
    forms = _shared(epprof_nb.Profile(), tmp_path, True)
    assert b"Removed from this copy" in forms["page"]


def test_this_machine_and_its_user_are_known_by_name(monkeypatch):
    from epprof_nb.files.redaction import host_and_user_patterns

    monkeypatch.setattr(socket, "gethostname", lambda: "calc7")
    monkeypatch.setattr(host_and_user_patterns.getpass, "getuser", lambda: "grace")
    host_and_user_patterns._local_names.cache_clear()
    try:
        redact = Filter(paths=False, hosts=True, shapes=False)
        assert redact("rank 3 on calc7, by Grace; calc71 stays") == (
            "rank 3 on (host), by (user); calc71 stays"
        )
    finally:
        host_and_user_patterns._local_names.cache_clear()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('open("/home/jane doe/a b.txt")', 'open("(path)")'),
        ("read_csv('data.csv', sep=',')", "read_csv('(path)', sep=',')"),
        ('x = load("~/half of a na\N{HORIZONTAL ELLIPSIS}', 'x = load("(path)'),
        ("!cp -r ../runs/last ./here", "!cp -r (path) (path)"),
        (r"open(C:\Users\jane\x)", "open((path))"),
        ("%run scripts/train.py", "%run (path)"),
        ("c = a / b", "c = a / b"),
        ("c = a/b", "c = a/b"),
        ("c = a/b.mean(0)", "c = a/b.mean(0)"),
        ("net.py(4): forward", "(path)(4): forward"),
        ("models/net.py(4): forward", "(path)(4): forward"),
        (r"C:\models\net.py(4): forward", "(path)(4): forward"),
        ("Load weights.safetensors.", "Load (path)."),
        ("y = torch.relu", "y = torch.relu"),
        ("df = frame.csv(1)", "df = frame.csv(1)"),
        ("mean = total/len(rows)", "mean = total/len(rows)"),
        ("'no path' + \"at all\"", "'no path' + \"at all\""),
    ],
)
def test_paths_are_known_from_formulas(text, told):
    assert Filter(paths=True, hosts=False, shapes=False)(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ssh://jane@node7.uni.edu:22/x", "ssh://(host)/x"),
        ("mail jane@uni.example.de", "mail (host)"),
        ("scores = q @ k.T", "scores = q @ k.T"),
        ("scores=q@k.T", "scores=q@k.T"),
        ('connect("db.intern.example.de")', 'connect("(host)")'),
        ("/home/jane/data", "/home/(user)/data"),
        ("fe80::1ff:fe23:4567:890a", "(host)"),
        ("http://[2001:db8::1]:80/x", "http://(host)/x"),
        ("2001:db8::8a2e:370:7334, fd00::5%eth0", "(host), (host)"),
        ("x[1::2] + y[::2] + z[10:20:3]", "x[1::2] + y[::2] + z[10:20:3]"),
        ("at::native::dead::beef", "at::native::dead::beef"),
        ("torch 2.11.0", "torch 2.11.0"),
    ],
)
def test_hosts_are_known_from_code(text, told):
    assert Filter(paths=False, hosts=True, shapes=False)(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("zeros((8, 128))", "zeros((shape))"),
        ("Size([8, 128, 768])", "Size((shape))"),
        ("matmul 512x768 by 768 \N{MULTIPLICATION SIGN} 64", "matmul (shape) by (shape)"),
        ("float[1024]", "(shape)"),
        ("x[0] + y[i, j]", "x[0] + y[i, j]"),
        ("layer 3 of 12", "layer 3 of 12"),
    ],
)
def test_shapes_are_known_from_indices(text, told):
    assert Filter(paths=False, hosts=False, shapes=True)(text) == told


def test_long_and_hostile_names_are_filtered_in_linear_time():
    everything = Filter(paths=True, hosts=True, shapes=True)
    for piece in ("a.", "a/", "-a", "1x", "'", '"/', "[1,", "a@", "ab:", "(", "://"):
        text = piece * 5_000
        assert isinstance(everything(text), str)  # a text that takes minutes fails by time-out


def test_the_command_leaves_out_what_it_is_told(tmp_path):
    path = tmp_path / "run.epprof"
    secretive().save(path)
    run = CliRunner().invoke(main, ["report", str(path), "--redact", "source,paths"])
    assert run.exit_code == 0, run.output
    page = _page_bytes(tmp_path / "run.html")
    assert b"hidden_model" not in page
    assert b"pathone" not in page
    assert b"4127" in page
    run = CliRunner().invoke(main, ["report", str(path), "--redact", "all"])
    assert run.exit_code == 0, run.output
    assert b"4127" not in _page_bytes(tmp_path / "run.html")
    run = CliRunner().invoke(main, ["report", str(path), "--redact", "secrets"])
    assert run.exit_code == 2
    assert "choose from source, paths, hosts, shapes" in run.output


def test_names_missing_in_a_row_stay_missing():
    prof = secretive()
    ops = prof.tables["ops"]
    codes = ops.names("name").codes.copy()
    codes[4] = -1
    prof.tables["ops"] = ops.replace(
        name=type(ops.names("name"))(codes, ops.names("name").categories)
    )
    assert prof.redacted("shapes").ops["name"].isna().tolist() == [row == 4 for row in range(9)]
    assert np.array_equal(prof.redacted().tables["ops"].names("name").codes < 0, codes < 0)


def test_sources_of_files_go_with_their_names():
    prof = secretive()
    for name in ("one", "two"):
        prof.sources[f"/srv/{name}.py"] = "def work(): pass\n"
    prof.info["op_places"] = {"In[1]": {"file": "/srv/one.py", "line": 1}}
    prof.info["class_places"] = {"Net": {"file": "/srv/two.py", "line": 1}}
    after = prof.redacted("paths")
    assert list(after.sources) == ["In[1]"]
    assert after.info["op_places"] == after.info["class_places"] == {}
    assert len(prof.redacted("source").sources) == 4


def test_places_in_cells_stay_without_paths():
    prof = secretive()
    place = {"file": "In[1]", "line": 2}
    prof.info["op_places"] = {"step": place, "other": {"file": "/srv/one.py", "line": 1}}
    prof.info["class_places"] = {"Net": place, "/srv/net": place}
    after = prof.redacted("paths")
    assert after.info["op_places"] == {"step": place}
    assert after.info["class_places"] == {"Net": place}


@pytest.mark.parametrize(
    "code", ["n = shape[2] // heads", "n = a //b", "n //= 2", "y = (a + b) // 2"]
)
def test_floor_division_is_no_path(code):
    text = Filter(paths=True, hosts=True, shapes=False)(code)
    assert ("(path)" in text) == (code == "n = a //b")  # may be one


def _stacks(redact):
    rows, _ = stack_rows("In[1]:1 my/a.py:f:2 lib/n.py:g:3", "In[1]:1 my/b.py:f:2")
    return redacted(with_stacks(tiny.profile(), rows), redact).tables["stacks"].to_frame()


def test_stacks_lose_their_files_but_stay_apart():
    files = _stacks("paths")["file"].tolist()
    assert files[0] == "In[1]"
    assert all(file.startswith("(path) ") for file in files[1:])
    assert len(set(files)) == 4


def test_stacks_lose_the_names_of_the_users_functions_with_the_source():
    frame = _stacks("source")
    assert frame["function"].tolist()[2] == "g"
    assert "f" not in frame["function"].tolist()
    assert frame["function"][1] == frame["function"][3] != frame["function"][0]
    assert frame["file"].tolist()[1] == "my/a.py"


def test_calls_of_language_models_keep_their_lengths_and_nothing_else():
    args = {"tokens": 7, "past_tokens": 0, "nodes": "learned", "call_ns": 9, "secret": "secret"}
    kind = {"op_type": "run", "category": "session", "session": 1}
    mark = {"phase": "decode", "tokens": 1, "model": "secret"}
    prof = tiny.profile(
        [
            tiny.op(1, "model_run", 0, 10, args=args, **kind),
            tiny.op(2, "decode", 20, 30, args=mark, category="user"),
            tiny.op(
                3, "other", 40, 50, args={"nodes": "secret", "tokens": "secret"}, category="user"
            ),
        ]
    )
    copy = prof.redacted("source")
    assert "secret" not in str(copy.ops["args"].tolist())
    assert copy.by_run()["node_events"].tolist() == ["learned"]
    assert copy.by_phase()["phase"].tolist() == ["prefill", "decode"]


def test_sizes_of_blocks_of_memory_stay():
    shown = profile_of([block(4096, 10, None, requested_bytes=4000)]).redacted()
    assert shown.memory_blocks[["bytes", "requested_bytes"]].to_numpy().tolist() == [[4096, 4000]]
    assert shown.memory_at()["requested_bytes"].tolist() == [4000]
