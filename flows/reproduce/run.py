"""The command `reproduce`: run every task of a paper once, store its result, and write the CSV files and the page.

Results are stored by `flows.compute.clusters.ResultCache`, so a run that was killed resumes. After a change of the
configuration, the data or the version, only the tasks that depend on the change run again.
"""

import csv
import io
import json
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from aucdist.data.own_files import jsonable
from aucdist.data.sources import check_installed
from aucdist.data.storage.files import shown, write_bytes
from aucdist.errors import InputError, Json, RunError, as_input_error, error_text, unknown
from aucdist.extras import load_optional
from flows.compute.clusters import ResultCache, open_cluster
from flows.config.cluster import ClusterConfig, NoCluster
from flows.config.loading import (
    Cli,
    NameArgument,
    Strict,
    UrlOption,
    config_of,
    configs_folder,
    flattened,
    read_mapping,
    yaml_text,
)
from flows.progress import RunObserver
from flows.reproduce.curves import Descent, LearningCurves
from flows.reproduce.gev import Links, Optimisers, Shapes
from flows.reproduce.kind import ExperimentKind, Result, Task, TaskKey, Version, version_of_data
from flows.reproduce.page import ExperimentReport, render_paper_page
from flows.reproduce.scores import Scores

FILE = "paper.yaml"

EXPERIMENTS: dict[str, type[ExperimentKind]] = {
    "scores": Scores,
    "learning-curves": LearningCurves,
    "descent": Descent,
    "links": Links,
    "shapes": Shapes,
    "optimisers": Optimisers,
}
"""The kinds of experiment; `kind` describes how to add one."""

if TYPE_CHECKING:
    Experiment = ExperimentKind
else:
    Experiment = Annotated[Union[tuple(EXPERIMENTS.values())], Field(discriminator="kind")]  # noqa: UP007

SECONDS_BETWEEN_NOTES = 5.0
TaskId = tuple[str, TaskKey]
"""The experiment of a task, and its key within the experiment."""


class Paper(Strict):
    """The experiments of a paper."""

    paper: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    """The number of the paper, which names the folder of the results."""
    title: str
    """The heading of the page: authors, year and title of the paper."""
    departures: list[str] = Field(default=[])
    """How the experiments differ from those of the paper. The page shows this text."""
    experiments: dict[str, Experiment]
    quick: dict[str, Json]
    """The experiments of `--quick`, and the keys that it changes. `datasets` is the list of the data sets to use."""
    cluster: ClusterConfig = Field(default_factory=NoCluster)
    output: str = Field(default="runs", min_length=1)
    """The folder or URL of the results."""


class ReproduceOptions(Strict):
    """The experiments of a paper."""

    paper: NameArgument
    """A paper of configs/reproduce, such as 000, or a YAML file."""
    quick: bool = False
    """Run only the small part that the file defines."""
    cluster: Annotated[str | None, Cli(metavar="NAME")] = None
    """A file in configs/cluster, or a path, in place of the cluster that the file names."""
    output: UrlOption = None
    """The folder or URL of the results. By default it is the one that the file names, or otherwise `runs`."""

    def load(self) -> Paper:
        """Read the paper's configuration.

        Raises
        ------
        InputError
            If the configuration is wrong. The message names the file and the key.
        """
        path = Path(self.paper)
        if not path.is_file():
            folder = configs_folder("reproduce")
            names = sorted(p.parent.name for p in folder.glob(f"*/{FILE}"))
            if self.paper not in names:
                raise unknown("paper", self.paper, names)
            path = folder / self.paper / FILE
        raw = read_mapping(path)
        experiments = raw.get("experiments")
        for experiment in experiments.values() if isinstance(experiments, dict) else ():
            if isinstance(experiment, dict) and isinstance(experiment.get("targets"), str):
                targets = path.parent / experiment["targets"]
                try:
                    rows = csv.DictReader(io.StringIO(targets.read_text(encoding="utf-8")))
                except (OSError, UnicodeDecodeError) as e:
                    raise InputError(f"cannot read {targets}: {e}") from None
                experiment["targets"] = [{k: v for k, v in row.items() if v != ""} for row in rows]
        settings = [] if self.cluster is None else [f"cluster={self.cluster}"]
        if self.quick:
            with as_input_error(f"{path}: `quick`", KeyError):
                # Only the experiments and data sets that `quick` names are kept. Its other keys are settings.
                quick, full = raw["quick"], raw["experiments"]
                selected = {name: full[name] for name in quick}
                raw |= {"paper": f"{raw['paper']}-quick", "experiments": selected, "quick": {}}
                for name, changes in quick.items():
                    if "datasets" in changes:
                        data_sets = full[name]["datasets"]
                        full[name]["datasets"] = {key: data_sets[key] for key in changes.pop("datasets")}
                    changed_keys = flattened(changes).items()
                    settings += [f"experiments.{name}.{key}={json.dumps(value)}" for key, value in changed_keys]
        return config_of(Paper, raw, str(path), path.parent, settings, self.output)


def reproduce(config: Paper, observer: RunObserver) -> Json:
    """Run the tasks that have no stored result. Then write the CSV file of each experiment, and the page.

    Raises
    ------
    InputError
        If the configuration or a data set is wrong, or a package is not installed.
    RunError
        If a task failed. The results of the tasks that are finished are in the cache.
    """
    for package in sorted({"jinja2"}.union(*(experiment.packages() for experiment in config.experiments.values()))):
        load_optional(package)
    folder = f"{config.output.rstrip('/')}/reproduce-{config.paper}"
    observer.stage("open data")
    versions = {
        name: {key: version_of_data(dataset) for key, dataset in experiment.datasets.items()}
        for name, experiment in config.experiments.items()
    }
    datasets = {key: version for by_key in versions.values() for key, version in by_key.items()}
    if absent := [version.name for version in datasets.values() if not version.present]:
        if len(absent) == len(datasets):
            check_installed(absent)
        observer.note(f"left out, because the data are not on this machine: {', '.join(dict.fromkeys(absent))}")
    results_of_tasks = _results(config, versions, folder, observer)
    observer.stage("publish")
    reports: dict[str, ExperimentReport] = {}
    for name, experiment in config.experiments.items():
        results = {key: result for (owner, key), result in results_of_tasks.items() if owner == name}
        reports[name] = experiment.report(results)
        if len(reports[name].lines.columns):
            csv = reports[name].lines.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            write_bytes(f"{folder}/{name}.csv", csv.encode())
    resolved = config.model_dump(mode="json", exclude_none=True)
    for experiment in resolved["experiments"].values():
        experiment.pop("targets", None)  # the targets are in a separate CSV file
    yaml = yaml_text(resolved)
    page = render_paper_page(config.title, config.departures, reports.values(), datasets, yaml)
    write_bytes(f"{folder}/config.yaml", yaml.encode())
    write_bytes(f"{folder}/report.html", page.encode())
    return {"run": shown(folder), "tables": {name: report.counts for name, report in reports.items() if report.counts}}


def run_task(task: Task) -> Result:
    """Run a task in any process."""
    with warnings.catch_warnings(action="ignore"):
        # The papers' solvers stop after a fixed number of steps, even if they have not converged.
        return EXPERIMENTS[task["kind"]].run_task(task)


def _results(
    config: Paper, versions: dict[str, dict[str, Version]], folder: str, observer: RunObserver
) -> dict[TaskId, Result]:
    """Return the result of every task, from the cache or by running the task. If a task fails, the error names it."""
    tasks = {
        (name, key): {"kind": experiment.kind, **task}
        for name, experiment in config.experiments.items()
        for key, task in experiment.tasks(versions[name])
    }
    cache = ResultCache(f"{folder}/tasks")
    entries = {  # a result is identified by the fingerprint of the data, not by their source
        (name, key): (f"{name}/{key.dataset}/{key.system}-{key.repeat}-{key.fold}", task | {"source": None})
        for (name, key), task in tasks.items()
    }
    results = {task_id: result for task_id, entry in entries.items() if (result := cache.get(*entry)) is not None}
    missing = {task_id: task for task_id, task in tasks.items() if task_id not in results}
    observer.stage(f"{len(missing)} tasks{f', {len(results)} more are in the cache' if results else ''}")
    if not missing:
        return results
    last = time.monotonic()
    with open_cluster(config.cluster, f"reproduce-{config.paper}", observer) as workers:
        for (name, key), result_of_task in _run_all(workers.client, missing):
            try:
                results[name, key] = jsonable(result_of_task())
            except Exception as e:
                error = InputError if isinstance(e, InputError) else RunError
                raise error(f"{name}, {key}: {error_text(e)}") from e
            cache.put(*entries[name, key], results[name, key])
            if time.monotonic() - last >= SECONDS_BETWEEN_NOTES:
                last = time.monotonic()
                observer.note(f"{len(results)} of {len(tasks)} tasks, now {name}, {key.dataset}, {key.system}")
    return results


def _run_all(client: Any, tasks: dict[TaskId, Task]) -> Iterator[tuple[TaskId, Callable[[], Result]]]:
    """Yield functions that return the results of tasks, in the order in which tasks finish.

    The tasks run on the workers of a Dask client, or in this process.
    """
    if client is None:
        yield from ((task_id, partial(run_task, task)) for task_id, task in tasks.items())
        return
    pool = client.get_executor(pure=False)
    try:
        ids = {pool.submit(run_task, task): task_id for task_id, task in tasks.items()}
        yield from ((ids[future], future.result) for future in as_completed(ids))
    finally:
        pool.shutdown(wait=False)
