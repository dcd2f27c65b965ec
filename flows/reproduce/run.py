"""Runs the tasks of a paper, each once, then writes the files of its experiments and the page.

Results are cached (`flows.compute.result_cache`), so a run that was killed resumes, and a changed configuration, data set or
version computes again what it changes, and nothing else.
"""

import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from typing import Any

import yaml

from aucdist.data.storage.files import shown, write_bytes
from aucdist.errors import InputError, RunError
from flows.compute.clusters import open_cluster
from flows.compute.result_cache import ResultCache
from flows.json_values import jsonable
from flows.progress.console import RunObserver
from flows.reproduce.config import KINDS, Paper
from flows.reproduce.datasets import Version, version_of
from flows.reproduce.kind import Key, Kind, Result, Task
from flows.reproduce.page import render

EVERY = 5.0  # seconds between two lines of progress
TaskId = tuple[str, Key]  # the experiment, and the key of the task in it


def reproduce(config: Paper, observer: RunObserver) -> dict[str, Any]:
    """Run what is not there yet, then write the files of each experiment and the page.

    Parameters
    ----------
    config : Paper
    observer : RunObserver

    Returns
    -------
    dict
        What ``aucdist reproduce --json`` prints.

    Raises
    ------
    InputError
        If the configuration or a data set is wrong.
    RunError
        If a task failed; the results of the others are in the cache.
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
) -> dict[TaskId, Result]:
    """Return the result of every task: from the cache, or by running it."""
    tasks = {(name, k): t for name, e in config.experiments.items() for k, t in tasks_of(e, versions[name])}
    cache = ResultCache(f"{folder}/tasks")
    cached = {task_id: cache.get(_label(task_id), _identity(task)) for task_id, task in tasks.items()}
    results: dict[TaskId, Result] = {task_id: result for task_id, result in cached.items() if result is not None}
    todo = {task_id: task for task_id, task in tasks.items() if task_id not in results}
    observer.stage(f"{len(todo)} tasks" + (f", {len(results)} are done already" if results else ""))
    if not todo:
        return results
    last = time.monotonic()
    with open_cluster(config.cluster, f"reproduce-{config.paper}") as workers:
        for task_id, result in _run_all(workers.client, todo):
            results[task_id] = jsonable(result)
            cache.put(_label(task_id), _identity(todo[task_id]), results[task_id])
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                name, key = task_id
                observer.note(f"{len(results)} of {len(tasks)} tasks, now {name}, {key.dataset}, {key.system}")
    return results


def _run_all(client: Any, tasks: dict[TaskId, Task]) -> Iterator[tuple[TaskId, Result]]:
    """Yield results as they come: from the workers of a Dask client, or one after the other in this process."""
    if client is None:
        for task_id, task in tasks.items():
            yield task_id, _named(task_id, lambda task=task: run(task))
        return
    pool = client.get_executor(pure=False)
    try:
        ids = {pool.submit(run, task): task_id for task_id, task in tasks.items()}
        for future in as_completed(ids):
            yield ids[future], _named(ids[future], future.result)
    finally:
        pool.shutdown(wait=False)


def _named(task_id: TaskId, result: Any) -> Result:
    """Return the result; an error says whose it is."""
    try:
        found: Result = result()
    except Exception as e:
        kind = InputError if isinstance(e, InputError) else RunError
        what = e if isinstance(e, InputError | RunError) else f"{type(e).__name__}: {e}"
        raise kind(f"{task_id[0]}, {task_id[1]}: {what}") from e
    return found


def _label(task_id: TaskId) -> str:
    name, key = task_id
    return f"{name}/{key.dataset}/{key.system}-{key.repeat}-{key.fold}"


def _identity(task: Task) -> Task:
    """Return what determines the result of a task: the data's fingerprint, not its source, whose notes may change."""
    return task | {"source": None}


def _yaml(config: Paper) -> str:
    resolved = config.model_dump(mode="json", exclude_none=True)
    for experiment in resolved["experiments"].values():
        experiment.pop("targets", None)  # the CSV of the table holds them
    return yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=4096)
