"""Results of tasks on disk, each named by a digest of everything that determines it: a run that is repeated reads them."""

import hashlib
import json
from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from aucdist import __version__
from aucdist.data.own_files import CHECKED, Sha256, read_json
from aucdist.data.storage.files import explained, open_fs, write_bytes
from aucdist.errors import InputError
from flows.json_values import jsonable


@with_config(CHECKED)
class _Result(TypedDict):
    """The file of a result."""

    sha256: Sha256
    result: Any


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
            stored = fs.find(path) if fs.exists(path) else []
            self._files = {file.removeprefix(path).lstrip("/") for file in stored}

    def get(self, label: str, task: Any) -> Any:
        """Return the result of a task, or None if it is not in the cache, or damaged there.

        `label`: for people: the start of the file's name, which may have folders.
        `task`: what determines the result beyond what all tasks share, in types of JSON.
        """
        file = self._file(label, task)
        if file not in self._files:
            return None
        try:
            stored = read_json(f"{self._url}/{file}", _Result)
        except InputError:  # damaged: it is computed again, and replaced
            return None
        return stored["result"] if stored["sha256"] == _digest(stored["result"]) else None

    def put(self, label: str, task: Any, result: Any) -> None:
        """Store the result of a task; see `get`."""
        content = jsonable(result)
        data = json.dumps({"sha256": _digest(content), "result": content}, allow_nan=False).encode()
        write_bytes(f"{self._url}/{self._file(label, task)}", data)

    def _file(self, label: str, task: Any) -> str:
        content = json.dumps([__version__, *self._common, task], sort_keys=True)
        return f"{label}-{hashlib.sha256(content.encode()).hexdigest()[:16]}.json"
