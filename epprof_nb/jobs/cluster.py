"""`epprof_nb.cluster`: profile the workers of a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.options import FRAMEWORKS, Options
from epprof_nb.jobs.dask.messages import check_client
from epprof_nb.jobs.dask.recording import ClusterRecording
from epprof_nb.jobs.job import Job
from epprof_nb.recording.session import session
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from types import TracebackType

    from epprof_nb.recording.session.session import Session


class cluster:  # noqa: N801 - used as a function
    """A Dask cluster to profile.

    Parameters
    ----------
    client
        A client of the cluster, ``distributed.Client``. The workers need the same version of
        epprof_nb; others run unprofiled, and the job lists them with the reason.

    Raises
    ------
    TypeError
        If `client` is not a client of Dask, or is asynchronous.

    Examples
    --------
    >>> from distributed import Client, LocalCluster  # doctest: +SKIP
    >>> client = Client(LocalCluster())  # doctest: +SKIP
    >>> with epprof_nb.cluster(client).profile() as job:  # doctest: +SKIP
    ...     frame.groupby("key").mean().compute()
    >>> job.by_task()  # doctest: +SKIP
    """

    def __init__(self, client: Any) -> None:  # noqa: ANN401
        check_client(client)
        self._client = client

    def profile(
        self,
        *,
        folder: str | PathLike[str] | None = None,
        detail: str = "default",
        max_records: int = 5_000_000,
        frameworks: Iterable[str] = FRAMEWORKS,
        stacks: bool = True,
        samples: bool = True,
    ) -> ClusterProfile:
        """Profile the workers, and this process, during a ``with`` statement.

        Parameters
        ----------
        folder
            Folder for the parts. Workers that can write it do so; the others send their part here.
            A temporary folder if None, which is removed with the job.
        detail, max_records, frameworks, stacks, samples
            See `epprof_nb.core.options.Options`; ``max_records`` is for each process.

        Returns
        -------
        context
            A context manager that gives a `Job`. It is empty until the block has ended, with or
            without an exception. Workers that join during the block are recorded, too.
        """
        chosen = (frameworks,) if isinstance(frameworks, str) else tuple(frameworks)
        options = Options(detail, max_records, frameworks=chosen, stacks=stacks, samples=samples)
        return ClusterProfile(self._client, options, folder)


class ClusterProfile(_native.GuardedContext):
    """The context manager of `cluster.profile`."""

    def __init__(
        self,
        client: Any,  # noqa: ANN401
        options: Options,
        folder: str | PathLike[str] | None,
    ) -> None:
        self._parameters = client, options, folder
        self._entered: list[tuple[ClusterRecording, Session, Job]] = []

    def _make(self) -> tuple[ClusterRecording, Session, Job]:
        client, options, folder = self._parameters
        return ClusterRecording(client, options, folder), session.Session(options), Job({})

    def _enter(self, made: tuple[ClusterRecording, Session, Job]) -> Job:
        recording, own, job = made
        own.open()  # takes longer for the first time, before the workers wait
        recording.begin()
        own.begin_code()
        return job

    def _exit(
        self,
        made: tuple[ClusterRecording, Session, Job],
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002
    ) -> None:
        recording, own, job = made
        ended_ns = _native.now_ns()
        recording.send_end(ended_ns)
        data = own.stop(error=None if kind is None else kind.__name__, ended_ns=ended_ns)
        try:
            finished = recording.finish(data, own.opened_ns, ended_ns)
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"The profiles of the cluster are lost ({format_error(failure)}).")
            return
        job.__dict__.update(finished.__dict__)  # all or nothing

    def _end(self, made: tuple[ClusterRecording, Session, Job]) -> None:
        recording, own, _ = made
        own.abort()
        recording.close()
