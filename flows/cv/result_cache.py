"""Results that are kept as they come, each under the digest of all that decides it, so that a search that was ended goes on."""

import hashlib
import json
from typing import Any

from aucdist import __version__
from aucdist.data.storage.files import explained, open_fs, read_bytes, write_bytes
from aucdist.search.choice import Result
from aucdist.search.schedule import Job
from flows.train.results import jsonable


class Kept:
    """Results in a folder.

    Parameters
    ----------
    url : str
        A path or a URL; made when the first result comes.
    about : dict
        What decides all results alike, in types of JSON: data, encoding, estimator, folds, metric.
    """

    def __init__(self, url: str, about: dict[str, Any]):
        self._url, self._about = url, about
        with explained(url, "read"):
            fs, path = open_fs(url)
            self._there = {found.rpartition("/")[2] for found in fs.find(path)} if fs.exists(path) else set()

    def get(self, job: Job) -> list[Result] | None:
        """Return the results of a job, or None where they are not there."""
        name = self._name(job)
        if name not in self._there:
            return None
        found: list[Result] = json.loads(read_bytes(f"{self._url}/{name}"))
        return found

    def put(self, job: Job, results: list[Result]) -> None:
        """Keep the results of a job."""
        text = json.dumps(jsonable(results), allow_nan=False)
        write_bytes(f"{self._url}/{self._name(job)}", text.encode())

    def _name(self, job: Job) -> str:
        content = json.dumps([__version__, self._about, jsonable(job._asdict())], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        inner = "" if job.cut.inner is None else f"-{job.cut.inner}"
        return f"{job.cut.repeat}-{job.cut.fold}{inner}-{digest}.json"
