"""Stages of a run, which are reported, timed and run by the pipeline; and results of tasks that are kept on disk."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from aucdist import __version__
from aucdist.data.own_files import CHECKED, Sha256, json_digest, read_json
from aucdist.data.storage.faults import storage_errors
from aucdist.data.storage.files import open_fs, write_bytes
from aucdist.errors import InputError
from flows.compute.clusters import Workers, open_cluster, s3_as_configured
from flows.json_values import jsonable
from flows.progress import RunObserver

COMPILING = "compiling kernels, once per machine"


StageRunner = Callable[..., Any]
"""``run(name, stage, *args, **options)`` returns what ``stage(*args, **options)`` returns: see
`flows.orchestration.flows.run_as_task`."""


class Stages:
    """The stages of one run.

    `observer`: is called with the name of each stage when it starts.
    `run_stage`: makes a task of each stage; by default a stage is called.
    `seconds`, dict of str to float: wall time of each stage so far, in order; of a stage that ran twice, the last. The time in
        which this process compiled kernels is listed separately, under `COMPILING`.
    """

    def __init__(self, observer: RunObserver, run_stage: StageRunner | None = None):
        from aucdist.kernels import rows  # loads Numba
        from aucdist.kernels.compiling import cache_folder

        self._observer, self._run_stage, self._start = observer, run_stage, time.perf_counter()
        if not any(cache_folder(rows.__file__).rglob("*.nbi")):
            observer.note(f"{COMPILING}: this run takes some seconds more")
        self.seconds: dict[str, float] = {}

    def __call__(self, name: str, stage: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Run a stage and return its result; see `StageRunner`."""
        from numba.core.event import install_timer  # loads Numba

        self._observer.stage(name)
        start = time.perf_counter()
        with install_timer("numba:compile", lambda seconds: None) as compiling:
            result = (
                stage(*args, **options) if self._run_stage is None else self._run_stage(name, stage, *args, **options)
            )
        compiled = compiling.duration if compiling.done else 0.0
        self.seconds[name] = time.perf_counter() - start - compiled
        if compiled:
            self.seconds[COMPILING] = self.seconds.get(COMPILING, 0.0) + compiled
        return result

    def elapsed(self) -> float:
        """Return the seconds since the run started."""
        return time.perf_counter() - self._start


@contextmanager
def started(
    config: Any, name: str, observer: RunObserver, run_stage: StageRunner | None
) -> Iterator[tuple[Stages, Workers]]:
    """Configure S3 and open the cluster of a command while the context lasts, and yield its stages and the workers.

    `config`: has `cluster` and `s3`.
    Raises InputError and RunError as `open_cluster` and `s3_as_configured`.
    """
    stages = Stages(observer, run_stage)
    with s3_as_configured(config, observer), open_cluster(config.cluster, name, observer) as workers:
        yield stages, workers


@with_config(CHECKED)
class _Result(TypedDict):
    """The file of a result."""

    sha256: Sha256
    result: Any


class ResultCache:
    """A content-addressed cache of results below a folder.

    A result is stored under a label and the digest of this version of aucdist, of `common` and of its task. So a changed
    configuration, data set or version computes again what it changes, and nothing else.

    `url`: a path or a URL; the folder is made with the first result.
    `common`: what all tasks share, in types of JSON.
    Raises InputError if the folder cannot be listed.
    """

    def __init__(self, url: str, *common: Any):
        self._url, self._common = url, common
        with storage_errors(url, "read"):
            fs, path = open_fs(url)
            stored = fs.find(path) if fs.exists(path) else []
            self._files = {file.removeprefix(path).lstrip("/") for file in stored}

    def get(self, label: str, task: Any) -> Any:
        """Return the result of a task, or None if it is not in the cache, or damaged there.

        `label`: a readable beginning of the file's name, which may have folders.
        `task`: what determines the result beyond what all tasks share, in types of JSON.
        """
        file = self._file(label, task)
        if file not in self._files:
            return None
        try:
            stored = read_json(f"{self._url}/{file}", _Result)
        except InputError:  # damaged: the result is computed again and replaced
            return None
        return stored["result"] if stored["sha256"] == json_digest(stored["result"]) else None

    def put(self, label: str, task: Any, result: Any) -> None:
        """Store the result of a task; see `get`."""
        content = jsonable(result)
        data = json.dumps({"sha256": json_digest(content), "result": content}, allow_nan=False).encode()
        write_bytes(f"{self._url}/{self._file(label, task)}", data)

    def _file(self, label: str, task: Any) -> str:
        return f"{label}-{json_digest([__version__, *self._common, task])[:16]}.json"
