"""`aucdist reproduce`: a paper's tables and figures, fold by fold, each fold a task of its own whose result is kept.

A result is kept under the digest of all that decides it, so a run that was killed goes on where it was, and a changed
configuration, data set or version computes anew what it changes and nothing else.
"""

import csv
import hashlib
import io
import json
import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any

import yaml

from aucdist import __version__
from aucdist.data.catalog import is_present
from aucdist.data.files import explained, open_fs, read_bytes, shown, write_bytes
from aucdist.data.readers import read
from aucdist.errors import InputError, RunError
from flows.console import Watch
from flows.pipeline import cluster
from flows.reproduce_cells import Cell, Key, Results, cells_of, tally
from flows.reproduce_config import Course, DataSet, Experiment, Paper, Table
from flows.reproduce_tasks import Params, Task, run
from flows.results import jsonable

EVERY = 5.0  # seconds between two lines of progress
NOT_RUN = "not run here"


@dataclass(frozen=True)
class Version:
    """Which version of a data set a table was run on; without rows where it is absent."""

    name: str
    source: str
    n_samples: int = 0
    n_features: int = 0
    n_pos: int = 0
    positive: str = ""
    fingerprint: str = ""
    note: str = ""

    @property
    def present(self) -> bool:
        """Whether it was there to run on."""
        return self.n_samples > 0


def reproduce(config: Paper, watch: Watch) -> dict[str, Any]:
    """Run what is not there yet, then write a CSV for each table and the page.

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
    from flows.reproduce_page import render

    folder = f"{config.output.rstrip('/')}/reproduce-{config.paper}"
    watch.stage("open data")
    versions = {
        name: {key: version_of(ref) for key, ref in e.datasets.items()} for name, e in config.experiments.items()
    }
    results = _results(config, versions, folder, watch)
    watch.stage("publish")
    tables = {
        name: cells_of(name, experiment, results)
        for name, experiment in config.experiments.items()
        if isinstance(experiment, Table)
    }
    for name, cells in tables.items():
        write_bytes(f"{folder}/{name}.csv", _csv(cells).encode())
    write_bytes(f"{folder}/config.yaml", _yaml(config).encode())
    write_bytes(f"{folder}/report.html", render(config, versions, results, tables, _yaml(config)).encode())
    return {"run": shown(folder), "tables": {name: tally(cells) for name, cells in tables.items()}}


def version_of(ref: DataSet) -> Version:
    """Read a data set and return what it is; where its files are absent, only what it is called."""
    source = ref.source
    if not is_present(source):
        return Version(ref.name, NOT_RUN, note=ref.note or source.note or "")
    data = read(source, name=ref.name)
    where = source.source if isinstance(source.source, str) else ", ".join(source.source)
    return Version(
        ref.name, where, data.block.n_samples, data.block.n_features, int((data.block.y > 0).sum()),
        ", ".join(data.schema.positive), data.fingerprint, ref.note or source.note or "",
    )  # fmt: skip


def tasks_of(name: str, experiment: Experiment, versions: dict[str, Version]) -> Iterator[tuple[Key, Task]]:
    """Yield every fold of an experiment on the data sets that are present."""
    protocol = experiment.protocol.model_dump(exclude={"repeats"})  # more of them leave those that are kept as they are
    for dataset, version in versions.items():
        if not version.present:
            continue
        source = experiment.datasets[dataset].source.model_dump(mode="json")
        for system_name, system in experiment.systems.items():
            if isinstance(experiment, Table):
                rest: dict[str, Any] = {"points": system.points(experiment.grid)}
            else:
                rest = _course(experiment, dataset, system)
            for repeat in range(experiment.protocol.repeats):
                for fold in range(experiment.protocol.folds):
                    task = Task(
                        experiment.kind, source, version.fingerprint, system.model.estimator,
                        protocol=protocol, repeat=repeat, fold=fold, **rest,
                    )  # fmt: skip
                    yield Key(name, dataset, system_name, repeat, fold), task


def _course(experiment: Course, dataset: str, system: Any) -> dict[str, Any]:
    points = system.points({"lam": [experiment.datasets[dataset].lam]})
    return {"points": points, "steps": system.steps, "every": experiment.every, "until": experiment.until}


def _results(config: Paper, versions: dict[str, dict[str, Version]], folder: str, watch: Watch) -> Results:
    """Return the result of every task: those that are kept, and those that are still to be run."""
    tasks = {k: t for name, e in config.experiments.items() for k, t in tasks_of(name, e, versions[name])}
    places = {key: _place(key, task) for key, task in tasks.items()}
    kept = _kept(f"{folder}/tasks")
    found = {key: _read(f"{folder}/tasks/{place}") for key, place in places.items() if place in kept}
    todo = {key: task for key, task in tasks.items() if key not in found}
    watch.stage(f"{len(todo)} tasks" + (f", {len(found)} are done already" if found else ""))
    if not todo:
        return found
    last = time.monotonic()
    with cluster(config.cluster, f"reproduce-{config.paper}") as (client, _):
        for key, result in _run_all(client, todo):
            found[key] = jsonable(result)
            write_bytes(f"{folder}/tasks/{places[key]}", json.dumps(found[key], allow_nan=False).encode())
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                watch.note(f"{len(found)} of {len(tasks)} tasks, now {key.experiment}, {key.dataset}, {key.system}")
    return found


def _run_all(client: Any, tasks: dict[Key, Task]) -> Iterator[tuple[Key, Params]]:
    """Yield results as they come: from the workers of a Dask client, or one after the other in this process."""
    if client is None:
        for key, task in tasks.items():
            yield key, _named(key, lambda task=task: run(task))
        return
    pool = client.get_executor(pure=False)
    try:
        keys = {pool.submit(run, task): key for key, task in tasks.items()}
        for future in as_completed(keys):
            yield keys[future], _named(keys[future], future.result)
    finally:
        pool.shutdown(wait=False)


def _named(key: Key, result: Any) -> Params:
    """Return the result; an error says whose it is."""
    try:
        found: Params = result()
    except Exception as e:
        where = f"{key.experiment}, {key.dataset}, {key.system}, repeat {key.repeat}, fold {key.fold}"
        kind = InputError if isinstance(e, InputError) else RunError
        raise kind(f"{where}: {e if isinstance(e, InputError | RunError) else f'{type(e).__name__}: {e}'}") from e
    return found


def _place(key: Key, task: Task) -> str:
    # The fingerprint stands for the source: its notes and titles may change.
    content = json.dumps([__version__, task.as_dict() | {"source": None}], sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return f"{key.experiment}/{key.dataset}/{key.system}-{key.repeat}-{key.fold}-{digest}.json"


def _kept(url: str) -> set[str]:
    """Return the results below a folder, by their path within it."""
    with explained(url, "read"):
        fs, path = open_fs(url)
        if not fs.exists(path):
            return set()
        return {found.removeprefix(path).lstrip("/") for found in fs.find(path)}


def _read(url: str) -> Params:
    found: Params = json.loads(read_bytes(url))
    return found


def _csv(cells: list[Cell]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(Cell.COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(cell.row() for cell in cells)
    return stream.getvalue()


def _yaml(config: Paper) -> str:
    resolved = config.model_dump(mode="json", exclude_none=True)
    for experiment in resolved["experiments"].values():
        experiment.pop("targets", None)  # the CSV of the table holds them
    return yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True, width=4096)
