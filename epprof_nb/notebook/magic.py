"""The magics ``%%gpuprofile`` and ``%gpuprofile``."""

from __future__ import annotations

import ast
import builtins
import copy
import re
import sys
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from epprof_nb import _native
from epprof_nb.notebook import cell_transform
from epprof_nb.notebook.arguments import Request, parse, parse_line, with_arguments
from epprof_nb.notebook.cell_run import CellRun, OnError
from epprof_nb.notebook.children_setting import ChildrenSetting
from epprof_nb.notebook.completion import matcher
from epprof_nb.notebook.failure_watch import FailureWatch
from epprof_nb.notebook.idle_imports import IdleImports
from epprof_nb.notebook.interleave import CellCode, Interleaving
from epprof_nb.notebook.messages import warn
from epprof_nb.notebook.settings import settings_of
from epprof_nb.notebook.shell import (
    cell_name,
    compiler_flags,
    execute,
    patch_linecache_first_line,
    register_source,
)
from epprof_nb.recording.statements.markers import MARKERS, install_markers
from epprof_nb.recording.statements.statement_registry import Cell
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import (
        ExecutionInfo,
        ExecutionResult,
        InteractiveShell,
    )

    from epprof_nb.notebook.baseline import Baseline
    from epprof_nb.notebook.cell_job import CellJob


@magics_class
class ProfileMagics(Magics):
    """The magics, transformers and event handlers of one shell."""

    shell: Any

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell=shell)
        self.settings = settings_of(shell)
        self.runs: list[CellRun] = []  # profiled cells can be nested
        self.infos: list[ExecutionInfo] = []  # infos of the running cells
        self.planned: CellRun | UsageError | None = None
        self.completions = matcher(self.gpuprofile.parser)  # type: ignore[attr-defined]
        self.failures = FailureWatch(self.settings)
        self.imports = IdleImports()
        self.children = ChildrenSetting(self.settings)
        self.value: object = None  # last expression of a cell, for IPython to display

    @with_arguments
    @line_cell_magic
    def gpuprofile(self, line: str, cell: str | None = None) -> object:
        """Profile the GPU work of a cell or statement.

            %%gpuprofile [options] [name]
            code

            %gpuprofile [options] statement

        The profile shows the kernels, copies and memsets that each line launched, and where the
        GPU was idle. It is displayed under the cell and assigned to the variable. The code itself
        runs as it would without the magic. Use %config GpuProfile to change the default options.

        Examples
        --------
        Profile a cell and keep the profile as prof:

            %%gpuprofile prof
            y = model(x)
            loss = y.mean().item()

        Run the cell twice unprofiled, then five times profiled, and show progress:

            %%gpuprofile prof --warmup 2 --repeat 5 --live
            train_step(batch)

        Record every CUDA call and all allocations, and save the profile:

            %%gpuprofile prof --detail api,memory --save run.epprof
            y = model(x)

        Compare with an earlier profile old, which was recorded with --repeat 20, too:

            %%gpuprofile prof --repeat 20 --baseline old
            y = model(x)

        Run the code of old again, alternating with this one, to find smaller differences:

            %%gpuprofile prof --repeat 20 --baseline old --interleave
            y = model(x)

        Find out which named ops limit the wall time, in 40 more repeats:

            %%gpuprofile prof --experiment 40
            with epprof_nb.op("forward"):
                y = model(x)
            loss = y.mean().item()

        Record the child processes, too, and keep all profiles as job:

            %%gpuprofile job --children
            outputs = llm.generate(prompts)

        Record the workers of a Dask cluster, too, whose client is the variable client:

            %%gpuprofile job --cluster client
            frame.groupby("key").mean().compute()

        Profile one statement and keep the profile as prof:

            %gpuprofile -o prof y = model(x)
        """
        if cell is None:
            request, source = parse_line(
                self.gpuprofile, line, self.settings, transform=self.shell.transform_cell
            )
            return self._run_directly(request, source)
        request = parse(self.gpuprofile, line, self.settings)
        return self._run_directly(request, cell, magic=f"%%gpuprofile {line}")

    # -- what the extension registers

    def hooks(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that the code of a transformed cell calls, by name."""
        return {
            cell_transform.BEGIN: self._begin,
            cell_transform.START: self._start,
            cell_transform.RECORD: self._record,
            cell_transform.WARM_UP: self._warm_up,
            cell_transform.REPEAT: self._repeat,
            cell_transform.EXPERIMENT: self._experiment,
            cell_transform.END: self._end,
            cell_transform.GUARD: self._guard,
            cell_transform.VALUE: self._value,
        }

    def handlers(self) -> dict[str, Callable[..., None]]:
        """Return the handlers of IPython events, by name."""
        return {
            "pre_run_cell": self._pre_run_cell,
            "post_execute": self._post_execute,
            "post_run_cell": self._post_run_cell,
        }

    # -- cells run by IPython

    def visit(self, module: ast.Module) -> ast.Module:
        """Insert the hooks and markers into a profiled cell (an AST transformer of IPython)."""
        options = cell_transform.begin_options(module)
        if options is None:
            return module
        self.install_names()
        try:
            body = self._planned(module, options)
        except UsageError as error:  # raised again by the line of the magic
            self.planned = error
        except Exception as error:  # noqa: BLE001 - IPython would unregister this transformer
            self.planned = UsageError(
                f"%%gpuprofile cannot read this cell ({format_error(error)}). The cell did not "
                "run. Delete the line of the magic to run it."
            )
        else:
            module.body = [module.body[0], *body]
        return module

    def _planned(self, module: ast.Module, options: str) -> list[ast.stmt]:
        """Plan the run of a profiled cell and return the nodes below the line of the magic."""
        request = parse(self.gpuprofile, self.shell.var_expand(options, depth=0), self.settings)
        body = module.body[1:]
        if not body:
            raise UsageError(
                "%%gpuprofile has nothing to profile. Put the code below it in the same cell."
            )
        baseline = self._baseline(request)
        info = self.infos[-1] if self.infos else None
        source: str = info.raw_cell if info is not None else _unparsed(module)  # type: ignore[assignment]
        first_line = cell_transform.magic_line(source, options)
        cell = Cell("", source)  # its name is set when it starts
        code = _code_of(body, cell, lines=request.lines, first_line=first_line)
        run = CellRun(
            request,
            cell,
            self._assign,
            code=code,
            baseline=baseline,
            interleaving=self._interleaving(request, baseline, code),
            job=self._job(request),
            info=info,
        )
        nodes = self._assembled(body, run, first_line=first_line)
        self.planned = run
        return nodes

    def _assembled(
        self, body: list[ast.stmt], run: CellRun, *, first_line: int = 0
    ) -> list[ast.stmt]:
        nodes, warning = cell_transform.assemble(
            body,
            run.request,
            run.cell,
            first_line=first_line,
            flags=compiler_flags(self.shell),
            shows_last=self.shell.ast_node_interactivity in ("last", "last_expr_or_assign"),
        )
        if warning:
            warn(warning)
            run.notes.append(warning)
        return nodes

    def install_names(self) -> None:
        """Let code find the hooks and markers, which it calls by name."""
        # Repeated for each cell, because %reset removes them. Hidden from %who.
        install_markers(self.shell.user_ns)
        self.shell.user_ns_hidden.update(MARKERS)
        # In builtins, they survive a %reset inside the cell.
        vars(builtins).update(self.hooks())

    def _baseline(self, request: Request) -> Baseline | None:
        if request.baseline is None:
            return None
        from epprof_nb.notebook.baseline import find_baseline

        return find_baseline(request.baseline, self.shell.user_ns)

    def _interleaving(
        self, request: Request, baseline: Baseline | None, code: CellCode | None
    ) -> Interleaving | None:
        if baseline is None or code is None or not request.interleave:
            return None
        interleaving = Interleaving(baseline, code, request.repeat, self.shell)
        for text in interleaving.warnings():
            warn(text)
        return interleaving

    def _job(self, request: Request) -> CellJob | None:
        if request.cluster is None and not request.children:
            return None
        from epprof_nb.notebook.cell_job import CellJob
        from epprof_nb.notebook.cell_processes import ChildProcesses, ClusterWorkers

        if request.cluster is None:
            return CellJob(ChildProcesses(request.options))
        return CellJob(ClusterWorkers(request.cluster, self.shell.user_ns, request.options))

    def _assign(self, name: str, result: object) -> None:
        self.shell.push({name: result})

    def _begin(self, options: str) -> None:
        planned, self.planned = self.planned, None
        if isinstance(planned, UsageError):
            raise planned
        if planned is None:
            raise UsageError(
                f"%%gpuprofile {options} does not work inside this magic, which runs the cell "
                "itself. Make %%gpuprofile the first line of the cell."
            )
        self._check_nesting(planned.request)
        self.runs.append(planned)
        # Tracebacks show context lines: show the line of the magic as the user wrote it.
        filename = sys._getframe(1).f_code.co_filename  # noqa: SLF001
        if planned.code is not None:
            planned.code.filename = filename
        patch_linecache_first_line(filename, f"# %%gpuprofile {options}")

    def _check_nesting(self, request: Request) -> None:
        """Raise UsageError if an experiment would repeat a recording, or run in one."""
        if self.runs and (request.experiment or any(run.request.experiment for run in self.runs)):
            raise UsageError(
                "--experiment repeats its cell without recording it, so it cannot be used inside "
                "another %%gpuprofile, nor %gpuprofile inside its cell. This code did not run. "
                "Remove the inner %gpuprofile."
            )

    def _start(self) -> None:
        __tracebackhide__ = True
        self._record()
        _native.stay_in_function(1)  # in the code of the cell, until it calls `_end` or fails

    def _record(self) -> bool:
        __tracebackhide__ = True
        run = self.runs[-1]
        run.cell.name = cell_name(self.shell)
        return run.start()

    def _warm_up(self) -> bool:
        __tracebackhide__ = True
        run = self.runs[-1]
        run.cell.name = cell_name(self.shell)
        return run.warm_up()

    def _repeat(self) -> bool:
        __tracebackhide__ = True
        return bool(self.runs) and self.runs[-1].repeat()

    def _experiment(self) -> bool:
        __tracebackhide__ = True
        return bool(self.runs) and self.runs[-1].next_of_experiment()

    def _end(self, value: object = None) -> None:
        if self.runs:
            self.runs[-1].stop()
        self.value = value

    def _guard(self) -> OnError:
        return OnError(self._fail)

    def _fail(self, error: BaseException) -> None:
        if self.runs:
            self.runs[-1].stop(error)

    def _value(self) -> object:
        value, self.value = self.value, None
        return value

    def _pre_run_cell(self, info: ExecutionInfo) -> None:
        self.imports.cell_begins()
        self.infos.append(info)
        self.failures.begin_cell()

    def _post_execute(self) -> None:
        # This is the only event of a silent cell.
        if self.runs and self.runs[-1].info is None and not self.runs[-1].runs_code_itself:
            self.runs.pop().finish()

    def _post_run_cell(self, result: ExecutionResult | None) -> None:
        ended, before = None, None
        for i in range(len(self.infos) - 1, -1, -1):
            # IPython creates a new info for an interrupted cell.
            if result is None or getattr(result.info, "raw_cell", None) == self.infos[i].raw_cell:
                ended, before = self.infos[i], self.failures.end_cells(i)
                del self.infos[i:]
                break
        if not self.infos:
            self.imports.cell_ends()
        error = None if result is None else result.error_before_exec or result.error_in_exec
        while (
            ended
            and self.runs
            and not self.runs[-1].runs_code_itself
            and self.runs[-1].info is ended
        ):
            self.runs.pop().finish(error)
        self.failures.explain(error, self.shell.user_ns, before)

    # -- code run by the magic itself

    def _run_directly(self, request: Request, source: str, *, magic: str | None = None) -> object:
        """Run code from inside the magic and return the value of its last expression.

        `magic` is the line of the cell magic, if there is one. Line numbers count from it.
        """
        self._check_nesting(request)
        shell = self.shell
        above = 0
        if magic is not None:
            above = 1 + len(re.match(r"(\s*\n)?", source)[0].splitlines())  # type: ignore[index]
        transformed = "\n" * above + shell.transform_cell(source)
        whole = source if magic is None else f"{magic}\n{source}"
        filename = register_source(shell, transformed, whole)
        module = shell.transform_ast(shell.compile.ast_parse(transformed, filename=filename))
        if not module.body:
            raise UsageError("%%gpuprofile has nothing to profile. Put code below it.")
        cell = Cell("", whole)
        code = _code_of(module.body, cell, lines=request.lines, filename=filename)
        baseline = self._baseline(request)
        run = CellRun(
            request,
            cell,
            self._assign,
            code=code,
            baseline=baseline,
            interleaving=self._interleaving(request, baseline, code),
            job=self._job(request),
            runs_code_itself=True,
        )
        nodes = self._assembled(module.body, run)
        self.install_names()
        self.runs.append(run)
        error: BaseException | None = None
        try:
            *nodes, last = nodes
            for node in nodes:
                execute(shell, node, filename)
            if isinstance(last, ast.Expr):
                return execute(shell, ast.Expression(last.value), filename)
            execute(shell, last, filename)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.runs.remove(run)
            run.finish(error)
        return None


def _unparsed(module: ast.Module) -> str:
    try:
        return ast.unparse(module)
    except RecursionError:
        return ""  # the ops of a cell have names even without source


def _code_of(
    body: list[ast.stmt], cell: Cell, *, lines: bool, first_line: int = 0, filename: str = "<cell>"
) -> CellCode | None:
    """Keep the code of a cell to run it again; None if it is nested too deeply to be copied."""
    try:
        return CellCode(copy.deepcopy(body), cell, lines, first_line, filename)
    except RecursionError:
        return None
