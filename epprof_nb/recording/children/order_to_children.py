"""Order: what the child processes of a job record, and where."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from epprof_nb.core.options import Options
from epprof_nb.recording.children.proc_filesystem import namespaces, start_ticks

VARIABLE = "EPPROF_CHILDREN"
"""Environment variable with the path of the order. If it is empty, a process does not record."""
MEASURING = "EPPROF_MEASURING"
"""Environment variable of the processes that measure in the background: they are in no job."""
ORDER_FILE = "order.json"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order to the processes of a job.

    Parameters
    ----------
    job_id
        Random text that the parts of the job share.
    folder
        Folder of the job, an absolute path.
    options
        What to record.
    launch
        Identity of the launch that began the job; its ranks have the same one.
    creator_pid, creator_start
        The process that began the job, or the launcher of its ranks, and when that process
        started, in the system's clock ticks.
    namespace
        Namespaces in which `creator_pid` and `creator_start` are valid.
    listen, token
        Whether children wait for messages before they record, and the secret of these messages.

    Examples
    --------
    >>> order = Order(job_id="a1", folder="/tmp/run", options=Options(detail="api"))
    >>> Order.from_json(order.to_json()) == order
    True
    """

    job_id: str
    folder: str
    options: Options
    launch: str = ""
    creator_pid: int = field(default_factory=os.getpid)
    creator_start: int = field(default_factory=lambda: start_ticks(os.getpid()))
    namespace: str = field(default_factory=namespaces)
    listen: bool = False
    token: str = ""

    @property
    def path(self) -> Path:
        """The file of the order in the folder of the job."""
        return Path(self.folder) / ORDER_FILE

    def to_json(self) -> str:
        """Return the order as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read an order.

        Raises
        ------
        ValueError
            If it is none.
        """
        try:
            stated = json.loads(text)
        except RecursionError as error:
            raise ValueError("the order is nested too deeply") from error
        if not isinstance(stated, dict) or not isinstance(stated.get("options"), dict):
            raise ValueError("the order has no options")  # noqa: TRY004 - as for other damage
        known = {f.name: stated[f.name] for f in fields(cls) if f.name in stated}
        given = stated["options"]
        options: dict[str, Any] = {
            f.name: tuple(given[f.name]) if isinstance(given[f.name], list) else given[f.name]
            for f in fields(Options)
            if f.name in given
        }
        try:
            known["options"] = Options(**options)
            order = cls(**known)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"the order is incomplete: {error}") from error
        for name, kind in (("job_id", str), ("folder", str), ("launch", str), ("token", str),
                           ("namespace", str), ("creator_pid", int),
                           ("creator_start", int)):  # fmt: skip
            if not isinstance(getattr(order, name), kind):
                raise ValueError(f"{name} of the order has the wrong type")  # noqa: TRY004
        return order

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the order to a file that only this user can read, atomically."""
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
            file.write(self.to_json())
        draft.replace(target)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read an order from its file.

        Raises
        ------
        OSError, ValueError
            If the file cannot be read, or has no order.
        """
        # Opening a pipe would wait for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{path} is not a file")
            return cls.from_json(file.read(_MAX_BYTES))

    @property
    def creator_runs(self) -> bool:
        """Whether the process that began the job is known to run."""
        return self.creator_start != 0 and start_ticks(self.creator_pid) == self.creator_start

    @property
    def creator_ended(self) -> bool:
        """Whether the process that began the job is known to have ended.

        Nothing is known of it in the namespaces of another container.
        """
        is_known = self.creator_start != 0 and self.namespace == namespaces() != ""
        return is_known and not self.creator_runs
