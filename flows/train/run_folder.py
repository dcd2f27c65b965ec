"""The run folder: written aside, shown whole or not at all."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from aucdist.data.storage.files import explained, open_fs, shown
from aucdist.data.storage.retries import patient, retried
from aucdist.errors import InputError, RunError

LAST = "metrics.json"  # uploaded last: where it is, the rest is


@dataclass(frozen=True)
class RunFolder:
    """A run folder in the making.

    Attributes
    ----------
    url : str
        Where it will be: a path, or a URL.
    aside : Path
        The local folder where it is being written.
    publish : callable
        Moves it from aside to its place.
    """

    url: str
    aside: Path
    publish: Callable[[], None]


def run_name(name: str, model: Any) -> str:
    """Return the name of a training run's folder: it tells the estimator's solver, and its lam if there is just one."""
    lam = f"-lam{model.lam:g}" if hasattr(model, "lam") else ""
    return stamped(f"{name}-{model.solver}{lam}")


def stamped(name: str) -> str:
    """Return the name of a folder; the time in UTC comes first, so that names sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{name}"


@contextmanager
def run_folder(output: str, name: str) -> Iterator[RunFolder]:
    """Check that `output` can be written to, and give a folder to write in; unless published, nothing of it stays.

    Parameters
    ----------
    output : str
        The parent, a path or an fsspec URL.
    name : str
        The name of the run folder.

    Raises
    ------
    InputError
        If `output` cannot be written to.
    """
    parts = urlsplit(output)
    if parts.scheme == "file":
        output = unquote(parts.path)
    with _remote(output, name) if "://" in output else _local(Path(output), name) as folder:
        yield folder


@contextmanager
def _local(parent: Path, name: str) -> Iterator[RunFolder]:
    missing = [p for p in (parent, *parent.parents) if not p.exists()]
    aside = parent / f".{name}.partial"
    try:
        try:
            aside.mkdir(parents=True)
        except OSError as e:
            raise InputError(f"cannot write to {parent}: {e.strerror}. Name another folder by --output") from None

        def publish() -> None:
            aside.rename(parent / name)

        yield RunFolder(str(parent / name), aside, publish)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        for folder in missing:
            with suppress(OSError):  # not empty: there is a run in it
                folder.rmdir()


@contextmanager
def _remote(output: str, name: str) -> Iterator[RunFolder]:
    url = f"{output.rstrip('/')}/{name}"
    with explained(output, "write"):
        fs, path = open_fs(url)
        retried(lambda: fs.pipe_file(f"{path}/.probe", b"may this be written?"))
        retried(lambda: fs.rm(f"{path}/.probe"))

    def publish() -> None:
        files = sorted((p for p in aside.rglob("*") if p.is_file()), key=lambda p: (p.name == LAST, p))
        try:
            with explained(url, "write"), patient():
                for file in files:
                    target = f"{path}/{file.relative_to(aside).as_posix()}"
                    retried(partial(fs.put_file, str(file), target))
        except InputError as e:
            with suppress(Exception):  # what cannot be written can perhaps not be removed either
                fs.rm(path, recursive=True)
            raise RunError(f"the run is lost: {e}") from None

    with tempfile.TemporaryDirectory(prefix="aucdist-run-") as folder:
        aside = Path(folder)
        yield RunFolder(shown(url), aside, publish)
