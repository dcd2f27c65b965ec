"""A run of `aucdist reproduce`: runs every task once, caches its result, and writes the CSV files and the page.

Results are cached (`flows.compute.result_cache`). A run that was killed therefore resumes, and after a change of the
configuration, the data or the version only the affected tasks run again.
"""

import time
import warnings
from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import replace
from typing import Any

import yaml

from aucdist.data.sources import refuse_absent
from aucdist.data.storage.files import shown, write_bytes
from aucdist.errors import InputError, RunError
from aucdist.extras import load_optional
from flows.compute.clusters import open_cluster
from flows.compute.result_cache import ResultCache
from flows.json_values import jsonable
from flows.progress.console import RunObserver
from flows.reproduce.config import KINDS, Paper
from flows.reproduce.kind import Result, Task, TaskKey, Version, read_version
from flows.reproduce.page import PageSection, render_paper_page, summary_entries

SECONDS_BETWEEN_NOTES = 5.0
PAGE_PACKAGES = {"jinja2", "matplotlib"}
TaskId = tuple[str, TaskKey]
"""The experiment of a task, and its key within the experiment."""


def reproduce(config: Paper, observer: RunObserver) -> dict[str, Any]:
    """Run the tasks that have no stored result, then write the CSV files of each experiment and the page.

    Raises InputError if the configuration or a data set is wrong, or a package is not installed.
    Raises RunError if a task failed; the results of the finished ones are in the cache.
    """
    for package in sorted(PAGE_PACKAGES.union(*(experiment.packages() for experiment in config.experiments.values()))):
        load_optional(package)
    folder = f"{config.output.rstrip('/')}/reproduce-{config.paper}"
    observer.stage("open data")
    versions = {
        name: {key: read_version(dataset) for key, dataset in experiment.datasets.items()}
        for name, experiment in config.experiments.items()
    }
    known = [
        (experiment.datasets[key].name, version.present)
        for name, experiment in config.experiments.items()
        for key, version in versions[name].items()
    ]
    if absent := [name for name, present in known if not present]:
        if len(absent) == len(known):
            refuse_absent(absent)
        observer.note(f"not here, and left out: {', '.join(dict.fromkeys(absent))}")
    results_of_tasks = _results(config, versions, folder, observer)
    observer.stage("publish")
    sections: list[PageSection] = []
    summaries = {}
    for name, experiment in config.experiments.items():
        results = {key: result for (owner, key), result in results_of_tasks.items() if owner == name}
        report = experiment.report(name, results)
        if len(report.table.columns):
            csv = report.table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            write_bytes(f"{folder}/{name}.csv", csv.encode())
        summaries[name] = report.counts
        first, *others = report.sections
        sections += [replace(first, counts=list(summary_entries(report.counts))), *others]
    datasets = {key: version for by_key in versions.values() for key, version in by_key.items()}
    page = render_paper_page(config.title, config.departures, sections, datasets, _yaml(config))
    write_bytes(f"{folder}/config.yaml", _yaml(config).encode())
    write_bytes(f"{folder}/report.html", page.encode())
    return {"run": shown(folder), "tables": {name: counts for name, counts in summaries.items() if counts}}


def run_task(task: Task) -> Result:
    """Run a task in any process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the papers' solvers stop after a fixed number of steps, converged or not
        return KINDS[task["kind"]].run_task(task)


def _results(
    config: Paper, versions: dict[str, dict[str, Version]], folder: str, observer: RunObserver
) -> dict[TaskId, Result]:
    """Return the result of every task, from the cache or from a run of the task."""
    tasks = {
        (name, key): {"kind": experiment.kind, **task}
        for name, experiment in config.experiments.items()
        for key, task in experiment.tasks(versions[name])
    }
    cache = ResultCache(f"{folder}/tasks")
    cached = {task_id: cache.get(_label(task_id), _identity(task)) for task_id, task in tasks.items()}
    results: dict[TaskId, Result] = {task_id: result for task_id, result in cached.items() if result is not None}
    missing = {task_id: task for task_id, task in tasks.items() if task_id not in results}
    observer.stage(f"{len(missing)} tasks" + (f", {len(results)} more are in the cache" if results else ""))
    if not missing:
        return results
    last = time.monotonic()
    with open_cluster(config.cluster, f"reproduce-{config.paper}", observer) as workers:
        for task_id, result in _run_all(workers.client, missing):
            results[task_id] = jsonable(result)
            cache.put(_label(task_id), _identity(missing[task_id]), results[task_id])
            if time.monotonic() - last >= SECONDS_BETWEEN_NOTES:
                last = time.monotonic()
                name, key = task_id
                observer.note(f"{len(results)} of {len(tasks)} tasks, now {name}, {key.dataset}, {key.system}")
    return results


def _run_all(client: Any, tasks: dict[TaskId, Task]) -> Iterator[tuple[TaskId, Result]]:
    """Yield results in order of completion, from the workers of a Dask client or from this process."""
    if client is None:
        for task_id, task in tasks.items():
            yield task_id, _result_or_named_error(task_id, lambda task=task: run_task(task))
        return
    pool = client.get_executor(pure=False)
    try:
        ids = {pool.submit(run_task, task): task_id for task_id, task in tasks.items()}
        for future in as_completed(ids):
            yield ids[future], _result_or_named_error(ids[future], future.result)
    finally:
        pool.shutdown(wait=False)


def _result_or_named_error(task_id: TaskId, result: Any) -> Result:
    """Return the result; an error names its task."""
    try:
        outcome: Result = result()
    except Exception as e:
        error = InputError if isinstance(e, InputError) else RunError
        message = e if isinstance(e, InputError | RunError) else f"{type(e).__name__}: {e}"
        raise error(f"{task_id[0]}, {task_id[1]}: {message}") from e
    return outcome


def _label(task_id: TaskId) -> str:
    name, key = task_id
    return f"{name}/{key.dataset}/{key.system}-{key.repeat}-{key.fold}"


def _identity(task: Task) -> Task:
    """Return what determines the result of a task: the fingerprint of the data, but not their source, whose notes may change."""
    return task | {"source": None}


def _yaml(config: Paper) -> str:
    resolved = config.model_dump(mode="json", exclude_none=True)
    for experiment in resolved["experiments"].values():
        experiment.pop("targets", None)  # they are in a CSV file of their own
    return yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=4096)
