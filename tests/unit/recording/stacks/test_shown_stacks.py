"""The stacks of running code: whose each frame is, what is dropped, and its text."""

import ast
import importlib
import importlib.machinery
import linecache
import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.core.options import Options
from epprof_nb.recording.stacks import availability
from epprof_nb.recording.stacks.shown_stacks import owner_of_files, shown_stacks
from tests.helpers.walked_stacks import Walker

needs_stacks = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)
LAUNCHES = "from epprof_nb import host\ndef launch():\n    host.launch(int)\n"
LINES = ["beside.launch()", "host.launch(int)"]
LAUNCH = "def launch(walk):\n    x = 1\n    return walk()\n\n\ndef unused():\n    pass\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(path, text, **variables):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    exec(compile(text, str(path), "exec"), variables)
    return variables


def printed_by(program, folder):
    """Return what a program prints, as a value."""
    command = [sys.executable, str(program)]
    others = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    shown = subprocess.check_output(command, cwd=folder, text=True, env=others)
    return ast.literal_eval(shown)


def frames_of(shown, stack):
    table = shown.table.to_frame()
    at, found = int(shown.row[stack]), []
    while at >= 0:
        row = table.loc[at]
        found.append((row["file"], row["function"], row["line"], row["owner"]))
        at = -1 if row["parent_id"] is None or row.isna()["parent_id"] else int(row["parent_id"])
    return found


def test_own_functions_have_their_line_and_text(home):
    walker = Walker()
    run(home / "model.py", LAUNCH + "\nstack = launch(walk)\n", walk=walker.walk)
    own = run(home / "trainer.py", LAUNCH, walk=None)
    stack = own["launch"](walker.walk)
    shown = shown_stacks(walker.stacks(), Options())
    assert frames_of(shown, stack)[0] == (str(home / "trainer.py"), "launch", 3, "own")
    assert frames_of(shown, stack)[1][0] == __file__
    text = shown.texts[str(home / "trainer.py")].splitlines()
    assert text == LAUNCH.splitlines()[:3]
    assert shown.texts[str(home / "model.py")] == (LAUNCH + "\nstack = launch(walk)")


def test_a_library_in_the_working_directory_is_no_code_of_the_user(home):
    path = home / ".venv" / "lib" / "site-packages" / "nn.py"
    walker = Walker()
    stack = run(path, LAUNCH)["launch"](walker.walk)
    shown = shown_stacks(walker.stacks(), Options())
    assert frames_of(shown, stack)[0][3] == "library"
    assert str(path) not in shown.texts
    chosen = shown_stacks(walker.stacks(), Options(own=(str(path.parent),)))
    assert frames_of(chosen, stack)[0][3] == "own"
    assert str(path) in chosen.texts


def test_what_runs_the_users_code_is_left_out_and_so_is_what_calls_that():
    walker = Walker()
    shell = "/x/site-packages/IPython/core/shell.py"
    loop = ("/usr/lib/python3.11/asyncio/base_events.py", "run_forever", 10, 1)
    start = [("<frozen runpy>", "run", 1, 1), loop, (shell, "run_code", 5, 1)]
    cell = ("/tmp/ipykernel_1/2.py", "<module>", 2, 1)
    stack = walker.add([*start, cell, loop, ("/x/site-packages/torch/nn.py", "f", 3, 1)])
    idle = walker.add([loop, ("/usr/lib/python3.11/queue.py", "get", 4, 1)])
    shown = shown_stacks(walker.stacks(), Options())
    names = [(function, owner) for _, function, _, owner in frames_of(shown, stack)]
    assert names == [("f", "library"), ("run_forever", "library"), ("<module>", "cell")]
    assert [function for _, function, _, _ in frames_of(shown, idle)] == ["get", "run_forever"]


PROGRAM = """\
import epprof_nb
from epprof_nb import host
def launch():
    host.launch(int)

with epprof_nb.profile({options}) as prof:
    launch()

print(prof.stacks.reset_index()[["function", "owner"]].values.tolist())
print(prof.activities["stack_id"].tolist())
"""


@needs_stacks
@pytest.mark.parametrize("file", ["-c", "-", "program.py"])
def test_a_program_without_a_file_or_of_a_library_has_stacks(home, file):
    is_script = file.endswith(".py")
    program = PROGRAM.format(options=f"library=[{str(home)!r}]" if is_script else "")
    if is_script:
        (home / file).write_text(program)
    arguments = [file, program] if file == "-c" else [file]
    printed = subprocess.check_output([sys.executable, *arguments], input=program, text=True)
    frames, activities = map(ast.literal_eval, printed.splitlines())
    owner = "library" if is_script else "own"
    assert frames == [["<module>", owner], ["launch", owner]]
    assert activities == [1]


def test_a_cell_has_its_name_and_the_text_that_it_had():
    name = "<ipython-input-7-0123456789ab>"
    source = "y = 1\ndef train():\n    step()\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    walker = Walker()
    stack = walker.add([(name, "train", 3, 2)])
    try:
        shown = shown_stacks(walker.stacks(), Options())
        known = shown_stacks(walker.stacks(), Options(), known={"In[7]": source})
    finally:
        del linecache.cache[name]
    assert frames_of(shown, stack) == [("In[7]", "train", 3, "cell")]
    assert shown.texts == {"In[7]": source.rstrip("\n")}
    assert known.texts == {}


def test_the_script_has_the_name_of_its_cell(home):
    walker = Walker()
    stack = run(home / "sub" / "train.py", LAUNCH)["launch"](walker.walk)
    path = str(home / "sub" / "train.py")
    shown = shown_stacks(walker.stacks(), Options(), script=(path, "train.py"))
    assert frames_of(shown, stack)[0][0] == "train.py"
    other = home / "other"
    other.mkdir()
    beside = str(home / "sub" / "beside.py")
    assert owner_of_files([beside], Options(), script=(path, "train.py")) == {beside: "own"}


@needs_stacks
def test_code_beside_the_program_is_the_users(tmp_path):
    (tmp_path / "beside.py").write_text(LAUNCHES)
    program = "import epprof_nb, beside\nwith epprof_nb.profile() as prof:\n    beside.launch()\n"
    (tmp_path / "program.py").write_text(f"{program}print(prof.by_line()['source'].tolist())\n")
    assert printed_by(tmp_path / "program.py", tmp_path.parent) == LINES
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert printed_by(link / "program.py", tmp_path.parent) == LINES


def test_the_caller_of_the_user_is_kept_although_the_user_calls_machinery(home):
    import queue
    import threading

    from epprof_nb.host import operations

    walker = Walker()
    thread = (threading.__file__, "Thread.run", 5, 1)
    launch = (operations.__file__, "launch", 7, 1)
    stack = walker.add([thread, (str(home / "a.py"), "work", 3, 1), launch])
    other = walker.add([(queue.__file__, "get", 2, 1), launch, (str(home / "a.py"), "work", 3, 1)])
    shown = shown_stacks(walker.stacks(), Options())
    found = [[frame[1] for frame in frames_of(shown, of)] for of in (stack, other)]
    assert found == [["work", "Thread.run"], ["work"]]


@needs_stacks
def test_code_in_an_archive_has_its_text(tmp_path):
    program = "import epprof_nb, beside\nwith epprof_nb.profile() as prof:\n    beside.launch()\n"
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
        archive.writestr("beside.py", LAUNCHES)
        archive.writestr("__main__.py", f"{program}print(prof.by_line()['source'].tolist())\n")
    assert printed_by(tmp_path / "program.zip", tmp_path.parent) == LINES


def test_a_file_that_has_changed_since_its_import_gives_no_text(home, monkeypatch):
    path = home / "edited.py"
    path.write_text(LAUNCH)
    monkeypatch.syspath_prepend(str(home))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    edited = importlib.import_module("edited")
    walker = Walker()
    stack = edited.launch(walker.walk)
    assert str(path) in shown_stacks(walker.stacks(), Options()).texts
    linecache.clearcache()
    path.write_text("# another line\n" + LAUNCH)
    shown = shown_stacks(walker.stacks(), Options())
    assert frames_of(shown, stack)[0][:3] == (str(path), "launch", 3)
    assert str(path) not in shown.texts
    stack = importlib.reload(edited).launch(walker.walk)
    shown = shown_stacks(walker.stacks(), Options())
    assert shown.texts[str(path)].splitlines()[3] == "    return walk()"


def add_module(monkeypatch, name, file, **variables):
    module = types.ModuleType(name)
    vars(module).update(__file__=file, **variables)
    monkeypatch.setitem(sys.modules, name, module)


def add_lazy_module(monkeypatch, file):
    def fail(name):
        raise ImportError(f"no {name}")

    module = types.ModuleType("lazy")
    module.__getattr__ = fail
    monkeypatch.setitem(sys.modules, "lazy", module)


def add_failing_loader(monkeypatch, file):
    class Loader:
        def get_source(self, name):
            raise RuntimeError(name)

    spec = importlib.machinery.ModuleSpec("failing", Loader())
    add_module(monkeypatch, "failing", file, __spec__=spec)


def add_empty_cache_entry(monkeypatch, file):
    monkeypatch.setitem(linecache.cache, file, None)


def replace_linecache(monkeypatch, file):
    original = linecache.checkcache

    def checkcache(filename=None):
        if filename == file:
            raise RuntimeError(filename)
        original(filename)

    monkeypatch.setattr(linecache, "checkcache", checkcache)


def make_pipe(monkeypatch, file):
    os.mkfifo(file)


def make_device(monkeypatch, file):
    Path(file).symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "arrange",
    [
        add_lazy_module,
        add_failing_loader,
        add_empty_cache_entry,
        replace_linecache,
        make_pipe,
        make_device,
    ],
)
def test_a_file_that_cannot_be_read_has_no_text_and_others_have(home, monkeypatch, arrange):
    walker, file = Walker(), str(home / "unreadable.py")
    readable = run(home / "model.py", LAUNCH)["launch"](walker.walk)
    stack = walker.add([(file, "launch", 3, 1)])
    arrange(monkeypatch, file)
    shown = shown_stacks(walker.stacks(), Options())
    assert frames_of(shown, stack) == [(file, "launch", 3, "own")]
    assert frames_of(shown, readable)[0][3] == "own"
    assert file not in shown.texts
    assert str(home / "model.py") in shown.texts


def test_a_removed_working_directory_and_names_that_are_no_paths(home, monkeypatch):
    walker = Walker()
    readable = run(home / "model.py", LAUNCH)["launch"](walker.walk)
    stacks = [walker.add([(file, "f", 3, 1)]) for file in ("relative.py", "a\0b.py", "a" * 5000)]
    removed = home / "removed"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    shown = shown_stacks(walker.stacks(), Options(own=(str(home),)))
    assert [frames_of(shown, stack)[0][3] for stack in stacks] == ["library"] * 3
    assert frames_of(shown, readable)[0][3] == "own"
    assert str(home / "model.py") in shown.texts


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "a\0/b", "failing_package.part", "lazy", ""])
def test_a_name_that_cannot_be_looked_up_names_nothing(home, monkeypatch, name):
    (home / "failing_package").mkdir()
    (home / "failing_package" / "__init__.py").write_text("raise RuntimeError('on import')\n")
    monkeypatch.syspath_prepend(str(home))
    add_lazy_module(monkeypatch, "")
    mine, other = str(home / "mine" / "a.py"), "/somewhere/else.py"
    options = Options(own=(name,), library=(name, str(home / "mine")))
    assert owner_of_files([mine, other], options) == {mine: "library", other: "library"}


def test_packages_are_named_by_their_name():
    import json.decoder

    file = json.decoder.__file__
    assert owner_of_files([file], Options())[file] == "library"
    assert owner_of_files([file], Options(own=("json",)))[file] == "own"
    chosen = Options(own=("json",), library=("json.decoder",))
    assert owner_of_files([file], chosen)[file] == "library"
    assert owner_of_files([file], Options(own=("no_such_package_anywhere",)))[file] == "library"


def test_an_editable_installation_is_code_of_the_user(tmp_path, monkeypatch):
    from epprof_nb.recording.stacks import shown_stacks as module

    checkout, packages = tmp_path / "my checkout", tmp_path / "packages"
    info = packages / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    url = checkout.as_uri()
    (info / "direct_url.json").write_text(f'{{"url": "{url}", "dir_info": {{"editable": true}}}}')
    monkeypatch.syspath_prepend(str(packages))
    module._editable_folders.cache_clear()
    file = str(checkout / "mine" / "a.py")
    try:
        assert owner_of_files([file], Options())[file] == "own"
    finally:
        module._editable_folders.cache_clear()


def test_without_stacks_there_is_nothing():
    shown = shown_stacks(Walker().stacks(), Options())
    assert len(shown.table) == 0
    assert shown.row.tolist() == [-1]
    assert shown.texts == {}


def test_a_program_whose_working_directory_was_removed_keeps_its_profile(home, monkeypatch):
    removed = home / "removed"
    removed.mkdir()
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "relative.py", raising=False)
    with epprof_nb.profile() as prof:
        host.launch(int)
        monkeypatch.chdir(removed)
        removed.rmdir()
    assert len(prof.activities) == 1
