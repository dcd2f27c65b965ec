"""The workers of a cluster that others may have started: whether they fit us, how many are there, and which are lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aucdist.errors import InputError, RunError

SAME = ("aucdist", "dask", "distributed", "cloudpickle", "numpy", "scipy", "numba")
"""Packages of which everyone must have the same version: those that speak to each other, and those that decide the bits."""


def check_versions(client: Any) -> None:
    """Check that client, scheduler and all workers have the same Python and the same packages.

    Raises InputError if they have not; the message names each package, and who has which version.
    """
    versions = client.get_versions(packages=list(SAME))
    here = _versions(versions["client"])
    there = {"the scheduler": versions["scheduler"]} | {
        f"worker {at}": versions["workers"][at] for at in sorted(versions["workers"])
    }
    wrong = []
    for name, mine in here.items():
        by_version: dict[str, list[str]] = {}
        for who, answer in there.items():
            by_version.setdefault(_versions(answer)[name], []).append(who)
        wrong += [f"{name} is {mine} here, {v} on {_some(who)}" for v, who in by_version.items() if v != mine]
    if wrong:
        raise InputError(
            "the cluster runs other versions, so the answer could be another one: " + "; ".join(wrong) + ". "
            "Run the same image, or install the same lock file, on all sides"
        )


def _versions(answer: Any) -> dict[str, str]:
    """Return the versions that count: of Python the first two numbers, of which cloudpickle's code objects depend."""
    packages = answer["packages"]
    python = ".".join(str(packages["python"]).split(".")[:2])
    return {"Python": python} | {name: packages.get(name) or "missing" for name in SAME}


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def wait_for_workers(client: Any, n_workers: int, timeout: float) -> None:
    """Wait until so many workers are there.

    `timeout`: seconds.
    Raises RunError if they did not come in time; the message says how many there are.
    """
    try:
        client.wait_for_workers(n_workers, timeout=timeout)
    except TimeoutError:
        raise RunError(f"{len(client.nthreads())} of {n_workers} workers came within {timeout:g} s") from None


@contextmanager
def keep_workers(client: Any, n_workers: int) -> Iterator[None]:
    """Ask the adaptive scaling of the cluster for so many workers, for as long as the context lasts.

    A fit is a chain of tasks of milliseconds with pauses between them. By its load a cluster would lose its workers, and the
    blocks on them, in mid-fit. The scheduler forgets the wish when this client is gone, however it went.
    """
    client.run_on_scheduler(_wish, client=client.id, n_workers=n_workers)
    try:
        yield
    finally:
        if client.status == "running":
            client.run_on_scheduler(_wish, client=client.id, n_workers=None)


@contextmanager
def report_lost_workers(client: Any, report: Callable[[str], None]) -> Iterator[None]:
    """Call a function with a line of text for each worker that is lost, for as long as the context lasts.

    A worker that is closed in order, as when a cluster scales down, is not lost.

    `report`: ``report(text)`` is called in the client's own thread.
    """
    reporting = True

    def on_event(event: tuple[float, Any]) -> None:
        _, what = event
        if reporting and isinstance(what, dict) and what.get("action") == "remove-worker" and not what.get("expected"):
            report(f"worker {what['worker']} was lost; what it held is made again")

    client.subscribe_topic("all", on_event)
    try:
        yield
    finally:
        reporting = False
        if client.status == "running":
            client.unsubscribe_topic("all")


def _wish(dask_scheduler: Any, client: str, n_workers: int | None) -> None:
    """Note on the scheduler how many workers a client wants, or that it wants none in particular any more."""
    wishes: dict[str, int] = dask_scheduler.__dict__.setdefault("_aucdist_wishes", {})
    if n_workers is None:
        wishes.pop(client, None)
    else:
        wishes[client] = n_workers
    by_load = type(dask_scheduler).adaptive_target

    def adaptive_target(target_duration: float | None = None) -> int:
        held = [n for who, n in wishes.items() if who in dask_scheduler.clients]
        target: int = max(held) if held else by_load(dask_scheduler, target_duration)
        return target

    dask_scheduler.adaptive_target = adaptive_target  # by its web API, as the operator of Kubernetes asks
    dask_scheduler.handlers["adaptive_target"] = adaptive_target  # by message, as Dask's own `adapt` asks
