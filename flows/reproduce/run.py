"""The engine of a reproduction: every task is run once and its result kept, then the files and the page are written.

A result is kept under the digest of all that decides it, so a run that was killed goes on where it was, and a changed
configuration, data set or version computes anew what it changes and nothing else.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from typing import Any

import yaml

from aucdist import __version__
from aucdist.data.storage.files import explained, open_fs, read_bytes, shown, write_bytes
from aucdist.errors import InputError, RunError
from flows.progress.console import RunObserver
from flows.reproduce.config import KINDS, Paper
from flows.reproduce.datasets import Version, version_of
from flows.reproduce.kind import Key, Kind, Result, Task
from flows.reproduce.page import render
from flows.train.results import jsonable
from flows.train.run import cluster

EVERY = 5.0  # seconds between two lines of progress
Place = tuple[str, Key]  # of a task: its experiment, and where it belongs there


def reproduce(config: Paper, observer: RunObserver) -> dict[str, Any]:
    """Run what is not there yet, then write the files of each experiment and the page.

    Parameters
    ----------
    config : Paper
    watch : Watch

    Returns
    -------
    dict
        What ``aucdist reproduce --json`` prints.

    Raises
    ------
    InputError
        If the configuration or a data set is wrong.
    RunError
        If a task failed; the results of the others are kept.
    """
    folder = f"{config.output.rstrip('/')}/reproduce-{config.paper}"
    observer.stage("open data")
    versions = {
        name: {key: version_of(ref) for key, ref in e.datasets.items()} for name, e in config.experiments.items()
    }
    found = _results(config, versions, folder, observer)
    observer.stage("publish")
    sections, tallies = [], {}
    for name, experiment in config.experiments.items():
        results = {key: result for (of, key), result in found.items() if of == name}
        for file, content in experiment.files(name, results).items():
            write_bytes(f"{folder}/{file}", content)
        sections += experiment.sections(name, results)
        tallies[name] = experiment.tally(results)
    datasets = {key: version for by_key in versions.values() for key, version in by_key.items()}
    page = render(config.title, config.departures, sections, datasets, _yaml(config))
    write_bytes(f"{folder}/config.yaml", _yaml(config).encode())
    write_bytes(f"{folder}/report.html", page.encode())
    return {"run": shown(folder), "tables": {name: counts for name, counts in tallies.items() if counts}}


def tasks_of(experiment: Kind, versions: dict[str, Version]) -> Iterator[tuple[Key, Task]]:
    """Yield the tasks of an experiment, each with the name of its kind."""
    for key, task in experiment.tasks(versions):
        yield key, {"kind": experiment.kind, **task}


def run(task: Task) -> Result:
    """Do a task, in any process."""
    return KINDS[task["kind"]].run(task)


def _results(
    config: Paper, versions: dict[str, dict[str, Version]], folder: str, observer: RunObserver
) -> dict[Place, Result]:
    """Return the result of every task: those that are kept, and those that are still to be run."""
    tasks = {(name, k): t for name, e in config.experiments.items() for k, t in tasks_of(e, versions[name])}
    files = {place: _file(place, task) for place, task in tasks.items()}
    kept = _kept(f"{folder}/tasks")
    found = {place: _read(f"{folder}/tasks/{file}") for place, file in files.items() if file in kept}
    todo = {place: task for place, task in tasks.items() if place not in found}
    observer.stage(f"{len(todo)} tasks" + (f", {len(found)} are done already" if found else ""))
    if not todo:
        return found
    last = time.monotonic()
    with cluster(config.cluster, f"reproduce-{config.paper}") as (client, _):
        for place, result in _run_all(client, todo):
            found[place] = jsonable(result)
            write_bytes(f"{folder}/tasks/{files[place]}", json.dumps(found[place], allow_nan=False).encode())
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                name, key = place
                observer.note(f"{len(found)} of {len(tasks)} tasks, now {name}, {key.dataset}, {key.system}")
    return found


def _run_all(client: Any, tasks: dict[Place, Task]) -> Iterator[tuple[Place, Result]]:
    """Yield results as they come: from the workers of a Dask client, or one after the other in this process."""
    if client is None:
        for place, task in tasks.items():
            yield place, _named(place, lambda task=task: run(task))
        return
    pool = client.get_executor(pure=False)
    try:
        places = {pool.submit(run, task): place for place, task in tasks.items()}
        for future in as_completed(places):
            yield places[future], _named(places[future], future.result)
    finally:
        pool.shutdown(wait=False)


def _named(place: Place, result: Any) -> Result:
    """Return the result; an error says whose it is."""
    try:
        found: Result = result()
    except Exception as e:
        kind = InputError if isinstance(e, InputError) else RunError
        what = e if isinstance(e, InputError | RunError) else f"{type(e).__name__}: {e}"
        raise kind(f"{place[0]}, {place[1]}: {what}") from e
    return found


def _file(place: Place, task: Task) -> str:
    """Return where a result is kept."""
    # The fingerprint stands for the source: its notes and titles may change.
    content = json.dumps([__version__, task | {"source": None}], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    name, key = place
    return f"{name}/{key.dataset}/{key.system}-{key.repeat}-{key.fold}-{digest}.json"


def _kept(url: str) -> set[str]:
    """Return the results below a folder, by their path within it."""
    with explained(url, "read"):
        fs, path = open_fs(url)
        if not fs.exists(path):
            return set()
        return {found.removeprefix(path).lstrip("/") for found in fs.find(path)}


def _read(url: str) -> Result:
    found: Result = json.loads(read_bytes(url))
    return found


def _yaml(config: Paper) -> str:
    resolved = config.model_dump(mode="json", exclude_none=True)
    for experiment in resolved["experiments"].values():
        experiment.pop("targets", None)  # the CSV of the table holds them
    return yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=4096)
