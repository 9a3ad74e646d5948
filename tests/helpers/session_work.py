"""Kernels on the host device for tests of sessions."""

from epprof_nb import host


def work(name: str) -> None:
    array = host.empty((16,))
    host.launch(lambda a: a.fill(1), array, name=name)


def kernels(prof) -> list[str]:
    found = prof.activities
    return found.loc[found["kind"] == "kernel", "name"].tolist()
