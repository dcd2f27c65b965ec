"""Results of tasks on disk, each named by a digest of everything that determines it: a run that is repeated reads them."""

import hashlib
import json
from typing import Any

from aucdist import __version__
from aucdist.data.storage.files import explained, open_fs, read_bytes, write_bytes
from flows.json_values import jsonable


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
        with explained(url, "read"):
            fs, path = open_fs(url)
            found = fs.find(path) if fs.exists(path) else []
            self._files = {file.removeprefix(path).lstrip("/") for file in found}

    def get(self, label: str, task: Any) -> Any:
        """Return the result of a task, or None if it is not in the cache.

        `label`: for people: the start of the file's name, which may have folders.
        `task`: what determines the result beyond what all tasks share, in types of JSON.
        """
        file = self._file(label, task)
        return json.loads(read_bytes(f"{self._url}/{file}")) if file in self._files else None

    def put(self, label: str, task: Any, result: Any) -> None:
        """Store the result of a task; see `get`."""
        data = json.dumps(jsonable(result), allow_nan=False).encode()
        write_bytes(f"{self._url}/{self._file(label, task)}", data)

    def _file(self, label: str, task: Any) -> str:
        content = json.dumps([__version__, *self._common, task], sort_keys=True)
        return f"{label}-{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"
