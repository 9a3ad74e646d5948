"""The MCP server, called by the SDK's own client: in memory, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import resource
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from importlib.util import find_spec

import pandas as pd
import pytest
from PIL import Image

import epprof_nb
from epprof_nb.analysis.sql import in_separate_process as sql_process
from epprof_nb.analysis.sql import separate_process_main as sql_worker
from epprof_nb.analysis.sql.limits import assistant_bytes
from epprof_nb.analysis.sql.tables import tables_of
from epprof_nb.testing import synthetic_profile
from tests.helpers.repeated import repeated

# Its import takes as long as that of all other tests of this folder.
pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the MCP SDK is not installed")
MS = 1_000_000
MAX_CHARS = 50_000
TOOLS = {"profiles", "summary", "sql", "compare", "timeline_png"}


def profiles():
    return {
        "old": repeated({"y = model(x)": MS}),
        "new": repeated({"y = model(x)": 2 * MS}, seed=1),
        "large": synthetic_profile(activities=3_000),
    }


def make_server(profiles, **options):
    from epprof_nb.mcp import tools

    return tools.make_server(profiles, **options)


def call(server, tool, **arguments):
    from mcp.client.client import Client

    async def calling():
        async with Client(server) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(calling())


def text(result):
    [content] = result.content
    return content.text


@pytest.fixture
def server():
    return make_server(profiles)


@pytest.fixture
def in_this_process(monkeypatch):
    """Queries run here, for what does not depend on the process that takes a second to start."""

    def answered(tables, query, **limits):
        answer = sql_worker.csv_of(tables, {**limits, "query": query})
        return sql_process.CsvAnswer(**answer)

    monkeypatch.setattr("epprof_nb.mcp.tools.csv_of_query", answered)


def test_the_tools_are_listed_as_reading_only(server):
    from mcp.client.client import Client

    async def listed():
        async with Client(server) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(listed())
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


def test_profiles_and_their_summary(server):
    lines = text(call(server, "profiles")).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["old", "new", "large"]
    summary = text(call(server, "summary", profile="large", max_chars=3_000))
    assert summary == profiles()["large"].summary(3_000)
    assert "select" in summary


def test_sql_returns_csv_and_counts_what_it_leaves_out(server):
    query = "select count(*) n, sum(duration_ns) t from activities"
    prof = profiles()["large"]
    expected = f"n,t\n{len(prof.activities)},{prof.activities['duration_ns'].sum()}\n"
    assert text(call(server, "sql", profile="large", query=query)) == expected
    whole = text(call(server, "sql", profile="large", query="from activities", max_rows=10_000))
    assert len(whole) < MAX_CHARS + 100
    assert "cut off after 50,000" in whole


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select range from range(30_000_000)", "range\n0\n1\n(cut off after 2 rows)\n"),
        ("select 1 as a, 'x' as a from range(2)", "a,a\n1,x\n1,x\n"),
        ("select 1 as a, 'x' as b where false", "a,b\n"),
        (
            "select repeat('x', 60_000) as a from range(3)",
            "a\n" + "x" * (MAX_CHARS - 2) + "\n(cut off",
        ),
    ],
)
@pytest.mark.usefixtures("in_this_process")
def test_a_large_result_is_cut(query, expected, server):
    answer = text(call(server, "sql", profile="old", query=query, max_rows=2))
    assert answer.startswith(expected)
    assert ("cut off" in answer) == ("cut off" in expected)
    assert len(answer) < MAX_CHARS + 100


def test_a_large_result_is_cut_where_it_is_computed(monkeypatch):
    converted = []
    to_csv = pd.DataFrame.to_csv

    def recorded(frame, **options):
        lengths = [len(str(value)) for value in frame.to_numpy().ravel()]
        converted.append((len(frame), max(lengths)))
        return to_csv(frame, **options)

    monkeypatch.setattr(pd.DataFrame, "to_csv", recorded)
    request = {
        "query": "select repeat('x', 60_000) as a from range(30_000_000)",
        "max_bytes": 2**28,
        "max_rows": 2,
        "max_chars": 1_000,
    }
    answer = sql_worker.csv_of(tables_of(profiles()["old"], request["query"]), request)
    assert converted == [(2, 1_000)]
    assert answer == {"csv": ("a\n" + "x" * 998), "characters": 2_004, "has_more_rows": True}


def test_the_memory_of_a_query_grows_with_the_profile():
    assert assistant_bytes(0) == 256 * 2**20
    # The queries of a summary of 2,000,000 activities need between 256 and 512 MiB.
    assert assistant_bytes(2_000_000) >= 512 * 2**20
    assert assistant_bytes(10**9) == 2 * 2**30


# DuckDB does not count the memory of functions on one value, or sees no interrupt in them.
UNBOUNDED = [
    "select length(repeat('x', 4_000_000_000))",
    "select list(range) from range(50_000_000)",
    "select len(string_split(repeat('a,', 200_000_000), ','))",
]


def test_queries_that_need_much_memory_leave_the_notebook_alone(server):
    call(server, "sql", profile="old", query="select 1")  # imports
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for query in UNBOUNDED:
        result = call(server, "sql", profile="old", query=query)
        assert result.is_error
        # The caller cannot change the limit, so the answer suggests another query.
        assert "needs more than 268 MB of memory" in text(result)
        assert "`group by`" in text(result)
        assert "max_bytes" not in text(result)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak - before < 50_000  # kB
    assert "epprof query" not in {thread.name for thread in threading.enumerate()}


def test_a_query_that_takes_long_is_ended(server, monkeypatch):
    started = []
    popen = subprocess.Popen

    def recorded(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr("epprof_nb.analysis.sql.in_separate_process.subprocess.Popen", recorded)
    monkeypatch.setattr("epprof_nb.mcp.tools.ASSISTANT_TIME_LIMIT_S", 1.0)
    endless = "select sum(a.range * b.range) from range(10_000_000) a, range(10_000_000) b"
    result = call(server, "sql", profile="old", query=endless)
    assert result.is_error
    assert "did not finish in 1 s" in text(result)
    assert "`group by`" in text(result)
    assert "time_limit_s" not in text(result)
    [process] = started
    assert process.returncode == -signal.SIGKILL


def test_a_worker_whose_server_ended_ends_too(monkeypatch):
    monkeypatch.setattr(sql_process.subprocess.Popen, "communicate", Orphaned.communicate)
    monkeypatch.setattr(sql_process.subprocess.Popen, "kill", lambda _: None)
    endless = "select sum(a.range * b.range) from range(10_000_000) a, range(10_000_000) b"
    with pytest.raises(TimeoutError, match="did not finish in 1 s"):
        sql_process.csv_of_query(
            tables_of(profiles()["old"], endless),
            endless,
            time_limit_s=1,
            max_bytes=2**28,
            max_rows=1,
            max_chars=100,
        )


class Orphaned:
    """A process for which nobody waits until its own limit."""

    communicate_of_popen = subprocess.Popen.communicate

    def communicate(self, timeout=None):
        assert timeout == 1
        return Orphaned.communicate_of_popen(self, timeout=None)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("sql", {"profile": "old", "query": f"select {'x' * 200_000}"}),
        ("sql", {"profile": "old", "query": f"select error('{'x' * 200_000}')"}),
        ("sql", {"profile": "x" * 200_000, "query": "select 1"}),
        ("sql", {"profile": "old", "query": "select 1", "max_rows": "x" * 200_000}),
        ("summary", {"profile": {"x" * 200_000: 1}}),
        ("compare", {"old": "old", "new": "x" * 200_000}),
        ("x" * 200_000, {}),
    ],
)
def test_errors_do_not_repeat_all_that_was_sent(server, tool, arguments):
    result = call(server, tool, **arguments)
    assert result.is_error
    assert len(text(result)) <= 2_000


def test_an_error_of_a_query_says_why(server):
    result = call(server, "sql", profile="old", query="select")
    assert result.is_error
    assert "the query failed" in text(result)


def test_a_query_that_is_no_text_is_an_error(server):
    result = call(server, "sql", profile="old", query="select '\ud800'")
    assert result.is_error
    assert "lone surrogate" in text(result)


def test_compare_takes_one_or_several_recordings(server):
    answer = text(call(server, "compare", old="old", new="new"))
    assert answer == epprof_nb.compare(*list(profiles().values())[:2]).to_markdown()
    assert answer.startswith("**slower**")
    several = text(call(server, "compare", old="old, old, old", new="new,new,new"))
    assert several.startswith("**slower**")


def test_the_timeline_is_a_picture(server):
    [content] = call(server, "timeline_png", profile="large").content
    assert content.mime_type == "image/png"
    assert Image.open(io.BytesIO(base64.b64decode(content.data))).width == 960


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (
            "summary",
            {"profile": "gone"},
            "No profile has the name 'gone'. The profiles are: old, new",
        ),
        ("compare", {"old": "old", "new": "gone"}, "No profile has the name 'gone'"),
        ("sql", {"profile": "old", "query": "copy ops to '/tmp/x.csv'"}, "SELECT"),
        ("sql", {"profile": "old", "query": "from read_text('/etc/passwd')"}, "query"),
        ("sql", {"profile": "old", "query": "select 1", "max_rows": 0}, "max_rows"),
        ("summary", {"profile": "old", "max_chars": 10}, "max_chars"),
        ("summary", {}, "profile"),
    ],
)
@pytest.mark.usefixtures("in_this_process")
def test_wrong_calls_are_errors_that_say_why(server, tool, arguments, said):
    result = call(server, tool, **arguments)
    assert result.is_error
    assert said in text(result)
    assert "root:" not in text(result)


def test_redacted_parts_are_in_no_answer():
    source = {"In[1]": "y = model(x)\nsecret_name = 1"}
    prof = repeated({"y = model(x)": MS})
    prof.sources.update(source)
    server = make_server(lambda: {"a": prof}, redact="source")
    answers = [
        text(call(server, "summary", profile="a")),
        text(call(server, "sql", profile="a", query="select distinct name from ops")),
        text(call(server, "compare", old="a", new="a")),
    ]
    assert not any("model(x)" in answer for answer in answers)
    with pytest.raises(ValueError, match="cannot redact"):
        make_server(dict, redact="everything")


def test_no_profile_says_how_to_record_one():
    assert "%%gpuprofile" in text(call(make_server(dict), "profiles"))


def test_saved_files_over_stdio(tmp_path):
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    for name, prof in list(profiles().items())[:2]:
        prof.save(tmp_path / f"{name}.epprof")
    command = ["-m", "epprof_nb.cli", "mcp", "old.epprof", "new.epprof"]
    parameters = StdioServerParameters(
        command=sys.executable, args=command, cwd=tmp_path, env=dict(os.environ)
    )

    async def calling():
        async with Client(stdio_client(parameters)) as client:
            tools = (await client.list_tools()).tools
            return tools, await client.call_tool("compare", {"old": "old", "new": "new"})

    tools, compared = asyncio.run(calling())
    assert {tool.name for tool in tools} == TOOLS
    assert text(compared).startswith("**slower**")


@pytest.fixture
def local():
    server = epprof_nb.mcp.serve(profiles())
    yield server
    server.stop()


def over_http(url, token, tool, **arguments):
    import httpx2  # a dependency of the SDK
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async def calling():
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool(tool, arguments)

    return asyncio.run(calling())


def test_a_process_serves_its_profiles_with_a_token(local):
    assert local.url.startswith("http://127.0.0.1:")
    assert text(over_http(local.url, local.token, "profiles")).startswith("old: ")
    assert local.token in repr(local)
    local.stop()
    assert "stopped" in repr(local)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(local.url, timeout=60)
    local.stop()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic {token}"},
        {"Authorization": "bearer{token}"},
        {"X-Token": "{token}"},
    ],
)
def test_requests_without_the_token_are_refused(local, headers):
    sent = {name: value.format(token=local.token) for name, value in headers.items()}
    for path in (local.url, local.url.replace("/mcp", "/other")):
        request = urllib.request.Request(path, b"{}", sent | {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request, timeout=60)


def test_other_sites_cannot_reach_it_through_a_browser(local):
    # DNS rebinding: the name of another site, resolved to this machine.
    headers = {"Authorization": f"Bearer {local.token}", "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream", "Host": "example.com"}  # fmt: skip
    request = urllib.request.Request(local.url, b"{}", headers)
    with pytest.raises(urllib.error.HTTPError, match="421"):
        urllib.request.urlopen(request, timeout=60)


def test_ports_and_tokens_that_cannot_be_used(local):
    port = int(local.url.split(":")[2].split("/")[0])
    with pytest.raises(OSError, match="in use"):
        epprof_nb.mcp.serve({}, port=port)
    with pytest.raises(ValueError, match="at least 16"):
        epprof_nb.mcp.serve({}, token="short")


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("epprof_nb.mcp.tools")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    monkeypatch.delitem(sys.modules, "epprof_nb.mcp.local_server", raising=False)
    with pytest.raises(ImportError, match=r"pip install epprof-nb\[mcp\]"):
        epprof_nb.mcp.serve({})


def test_a_query_near_its_memory_lacks_memory_and_no_library():
    query = "select string_agg(name, ',') from ops, range(40000)"
    tables = tables_of(synthetic_profile(activities=300), query)
    try:
        answer = sql_process.csv_of_query(
            tables, query, time_limit_s=60, max_bytes=2**28, max_rows=2, max_chars=99
        )
    except MemoryError as error:
        assert "needs more than 268,435,456 bytes" in str(error)  # noqa: PT017
    else:
        assert answer.csv
