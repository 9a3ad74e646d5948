"""A Python that has imported packages and is forked for each program, which saves their imports."""

from __future__ import annotations

import atexit
import functools
import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

TIMEOUT_S = 240


@functools.cache
def _server(modules: tuple[str, ...]) -> subprocess.Popen[bytes]:
    server = subprocess.Popen(
        [sys.executable, __file__, *modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip

    def end():
        server.stdin.close()
        server.wait()

    atexit.register(end)
    return server


def run(
    arguments: list[str], *, cwd: Path, imported: tuple[str, ...], given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``python ARGUMENTS`` in a fork of a Python that has imported modules.

    The program's own imports find them there, so that it must not depend on when they run.

    Parameters
    ----------
    arguments
        ``-m`` and a module, or ``-c`` and code, followed by arguments.
    cwd
        Folder of the program.
    imported
        Names of the modules.
    given
        Standard input of the program.
    """
    server = _server(imported)
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder) / name for name in ("in", "out", "err")]
        streams[0].write_text(given)
        request = [arguments, str(cwd), [str(path) for path in streams], dict(os.environ)]
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        answers, *_ = select.select([server.stdout], [], [], TIMEOUT_S)
        if not answers:
            _server.cache_clear()
            os.killpg(server.pid, signal.SIGKILL)  # also the program
            raise TimeoutError(f"{arguments} takes longer than {TIMEOUT_S} s")
        code = int(server.stdout.readline())
        out, err = (path.read_text() for path in streams[1:])
        return subprocess.CompletedProcess(arguments, code, out, err)


def _serve() -> tuple[list[str], str, list[str], dict[str, str]]:
    """Fork for each request; return it in the child."""
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            return json.loads(line)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(1, b"%d\n" % code)
    os._exit(0)


if __name__ == "__main__":
    if not sys.flags.safe_path:  # else it is no folder of a program
        sys.path[0] = ""
    for name in sys.argv[1:]:
        __import__(name)
    gc.freeze()
    (option, name, *arguments), cwd, streams, environment = _serve()
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    if not sys.flags.safe_path:
        sys.path[0] = cwd if option == "-m" else ""  # as in a new process
    sys.argv = ["-c", *arguments]
    if option == "-m":
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(name, "<string>", "exec"), vars(main))
