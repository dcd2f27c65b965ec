"""Write run folders atomically, read their metrics, find unfinished folders, and record the code and packages of a run.

The module also writes and reads the scores of a run's test rows, a Parquet file of the run folder, and computes their metrics.
"""

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy import ndarray

from aucdist.data.block import Block
from aucdist.data.own_files import REPAIR, ROW_ID, read_json, read_parquet
from aucdist.data.storage.faults import DISK_FULL_ERRORS, long_retries, retried, storage_errors
from aucdist.data.storage.files import exists, local_path, read_bytes, shown, store
from aucdist.engine.blocks import Summary
from aucdist.engine.view import AnyBlocks
from aucdist.errors import InputError, Json, RunError
from aucdist.estimators.scores import map_matrix
from aucdist.metrics.counts import ScoreCounts
from aucdist.model.files import load_model
from aucdist.model.linear_model import LinearModel
from flows.config.data import DataConfig
from flows.config.loading import parse_yaml, validated
from flows.config.model import ModelConfig
from flows.run_folder.schema import RunResult

METRICS, CONFIG = "metrics.json", "config.yaml"
"""Files of a run folder. `metrics.json` is uploaded last: a folder that has it is complete."""
PARTIAL = ".partial"
"""The end of the name of a run folder that is being written."""
MAX_NAMED = 3


def read_metrics(run: str) -> Json:
    """Return the content of ``metrics.json`` in a run folder.

    Raises
    ------
    InputError
        If the folder is not that of a run, or the file is damaged.
    """
    try:
        about: Any = read_json(f"{run}/{METRICS}", RunResult)
    except InputError as e:
        raise InputError(f"{shown(run)} is not the folder of a run, which has {METRICS}: {e}") from None
    return dict(about)


def configuration_of(run: str) -> Json:
    """Return the configuration of a run from its ``config.yaml``.

    Raises
    ------
    InputError
        If the file does not exist or is damaged.
    """
    where = f"{run}/{CONFIG}"
    content = parse_yaml(read_bytes(where), shown(where))
    if not isinstance(content, dict):
        raise InputError(f"{shown(where)} is damaged: it is not a mapping of keys. {REPAIR}")
    return content


def data_config(run: str) -> DataConfig:
    """Return the configuration of the data that a run was trained on. It raises the same errors as `configuration_of`."""
    return validated(DataConfig, configuration_of(run).get("data"), f"{shown(run)}/{CONFIG}: data")


class RunFolder(NamedTuple):
    """A run folder that is being written.

    Attributes
    ----------
    url : str
        The path or URL at which the folder will be published.
    draft : Path
        The local folder in which the files are written first.
    publish : callable
        Moves the draft to `url`.
    """

    url: str
    draft: Path
    publish: Callable[[], None]


def fit_name(name: str, model: ModelConfig, number_text: Callable[[float], str] = "{:g}".format) -> str:
    """Return the name of a training run. It has the solver, and lam if this is known before the run."""
    built, tail = model.built, "-auto" if model.chooses_features else ""
    lam = model.lam if model.chooses_features else getattr(built, "lam", None)
    if lam is not None:
        tail = f"-lam{number_text(lam)}{tail}"
    return f"{name}-{built.resolved_solver.name}{tail}"


def timestamped(name: str) -> str:
    """Return a name with the time in UTC in front, so that names sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{name}"


def run_folder(output: str, name: str) -> AbstractContextManager[RunFolder]:
    """Return a context manager that checks that `output` is writable, and yields a run folder to write to.

    If the folder is not published, it is removed.

    Parameters
    ----------
    output : str
        The parent folder, a path or an fsspec URL.
    name : str
        The name of the run folder.

    Raises
    ------
    InputError
        If `output` cannot be written to.
    """
    path = local_path(output)
    return _remote(output, name) if path is None else _local(path, name)


@contextmanager
def _local(parent: Path, name: str) -> Iterator[RunFolder]:
    missing = [p for p in (parent, *parent.parents) if not p.exists()]
    draft, made = parent / f".{name}{PARTIAL}", False
    try:
        try:
            draft.mkdir(parents=True)
        except OSError as e:
            if not os.path.lexists(draft):
                raise InputError(f"cannot write to {parent}: {e.strerror}. Name another folder with --output") from None
            raise InputError(
                f"{draft} already exists: another run of this name writes into it, or was killed. Give this run "
                "another name, or remove the folder if no run uses it"
            ) from None
        made = True

        def publish() -> None:
            try:
                draft.rename(parent / name)
            except OSError as e:
                raise RunError(
                    f"the run is lost: cannot create {parent / name}: {e.strerror}. Name another folder with --output"
                ) from None

        with _full_disk_explained(parent), in_use(draft):
            yield RunFolder(str(parent / name), draft, publish)
    finally:
        if made:  # otherwise the folder belongs to another run
            shutil.rmtree(draft, ignore_errors=True)
        for folder in missing:
            with suppress(OSError):  # the folder is not empty, because it contains a run
                folder.rmdir()


@contextmanager
def _full_disk_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        if e.errno not in DISK_FULL_ERRORS:
            raise
        raise RunError(
            f"the run is lost: no space is left in {folder}, or in the folder of temporary files ({tempfile.gettempdir()}). "
            "Make room, or name another folder with --output"
        ) from None


@contextmanager
def _remote(output: str, name: str) -> Iterator[RunFolder]:
    url = f"{output.rstrip('/')}/{name}"
    with store(url, "write") as (fs, path):
        retried(fs.pipe_file, f"{path}/.probe", b"can this be written?")
        retried(fs.rm, f"{path}/.probe")

    def publish() -> None:
        is_published = False
        files = sorted((p for p in draft.rglob("*") if p.is_file()), key=lambda p: (p.name == METRICS, p))
        try:
            with storage_errors(url, "write"), long_retries():
                if retried(fs.exists, f"{path}/{METRICS}"):
                    raise RunError(
                        f"the run is lost: {shown(url)} already exists, and belongs to another run. Name another folder with "
                        "--output, and run again"
                    )
                is_published = True
                for file in files:
                    retried(fs.put_file, str(file), f"{path}/{file.relative_to(draft).as_posix()}")
        except BaseException as e:  # a signal that ends the process raises an exception, too
            if is_published:
                with suppress(Exception):  # if writing fails, removing may fail as well
                    fs.rm(path, recursive=True)
            if not isinstance(e, InputError):
                raise
            kept = draft.rename(tempfile.mkdtemp(prefix=f"aucdist-{name}-"))
            raise RunError(f"{e}. The run is complete in {kept}: copy this folder to {shown(url)}") from None

    with tempfile.TemporaryDirectory(prefix="aucdist-run-") as folder, _full_disk_explained(Path(folder)):
        draft = Path(folder)
        yield RunFolder(shown(url), draft, publish)


# ---- folders of killed runs --------------------------------------------------------------------------------------------


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Mark a folder as in use while the context lasts. The mark is a lock, and the lock ends with the process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # on a file system without locks, the folder looks unfinished
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def is_in_use(folder: Path) -> bool:
    """Return whether a running process has marked a folder as in use. It is False if the file system has no locks."""
    with suppress(OSError):  # the folder does not exist, or the file system has no locks
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def unfinished_runs(output: str, command: str) -> str | None:
    """Return a line that names the unfinished run folders of killed runs in `output`, or None if there are none.

    Run folders on object stores are first written to the local disk. A killed run leaves nothing on the object store.

    Parameters
    ----------
    output : str
        The parent folder of run folders.
    command : str
        The command that writes them, such as ``"aucdist train"``.
    """
    parent = local_path(output)
    if parent is None or not parent.is_dir():
        return None
    runs = [str(path) for path in sorted(parent.glob(f".*{PARTIAL}")) if path.is_dir() and not is_in_use(path)]
    if not runs:
        return None
    first, more = runs[:MAX_NAMED], f" and {len(runs) - MAX_NAMED} more" if len(runs) > MAX_NAMED else ""
    return (
        f"unfinished run folders: {', '.join(first)}{more}. If you repeat the same `{command}`, it begins another folder, and "
        f"continues from checkpoints and finished tasks. If no run writes to the unfinished ones, remove them: `rm -r "
        f"{shlex.join(first)}`"
    )


# ---- the code and the packages of a run ------------------------------------------------------------------------------


LOGGED_PACKAGES = ("aucdist", "numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow", "dask", "distributed")
"""The packages that the result of a run depends on."""


def versions(packages: Sequence[str] = LOGGED_PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    installed = {"python": platform.python_version()}
    for package in packages:
        with suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed


def digests() -> dict[str, str]:
    """Return the SHA-256 of the code of aucdist, and that of the names and versions of all installed packages.

    Names and versions are taken from the names of the packages' folders, because reading their metadata takes half a second.
    """
    root, code = Path(__file__).resolve().parents[2], hashlib.sha256()
    for file in sorted(file for package in ("aucdist", "flows") for file in (root / package).rglob("*.py")):
        code.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    packages = sorted({info.stem for folder in sys.path for info in Path(folder).glob("*.dist-info")})
    return {"code": code.hexdigest(), "packages": hashlib.sha256("\n".join(packages).encode()).hexdigest()}


SCORES = "scores.parquet"
DECISION = "decision"
"""The kind of scores that ``score`` in ``metrics.json`` names: scores of the saved model, which are positive for predicted
positives. Runs of older versions stored X w, without intercepts and spreads."""
GROUP_PREFIX = "of "
"""The prefix of columns that define groups of test rows."""
THRESHOLD_ROWS = "threshold.parquet"
"""The rows that set the threshold: X w, and the weight of both classes at each value. `aucdist threshold` uses them again."""
OPTIONAL = {"weight": pa.float64(), "group": pa.int64(), "grade": pa.float64(), "cost": pa.float64()}
"""The columns of the test rows that only exist if the rows have such values. They are attributes of `Block`."""


def score_test_rows(rows: AnyBlocks, models: Sequence[Any]) -> tuple[list[ScoreCounts], pa.Table, ndarray]:
    """Score test rows on their workers with the models of all classes, in one reduction.

    Returns
    -------
    tuple (list of ScoreCounts, pyarrow.Table, ndarray)
        The counts of the scores for each class. A table with the row id, the label ``y`` (for several classes ``code``, the
        number of the row's set of classes), and weight, group, grade and cost if there are some. The scores, of shape (n_test,
        n_classes), without intercepts, because adding these could round two scores to one.
    """
    weights = [(model.coef_[0], getattr(model, "feature_map_", None)) for model in models]
    labels = None if rows.sets is None else [rows.sets.labels_against_rest(k) for k in range(len(models))]
    summary = rows.all_blocks().sum(_score_block, weights, labels)
    return (
        [summary[f"counts {k}"] for k in range(len(models))], pa.concat_tables(summary["tables"]),
        np.concatenate(summary["scores"])
    )  # fmt: skip


def _score_block(block: Block, weights: Sequence[tuple[ndarray, Any]], set_labels: Sequence[ndarray] | None) -> Summary:
    """Return the scores of a block and what else `score_test_rows` needs of it.

    For several classes, `set_labels` has the labels of each set of classes.
    """
    scores = np.column_stack([map_matrix(block.X, feature_map).scores(w) for w, feature_map in weights])
    names = ("row_id", "y" if block.code is None else "code", *OPTIONAL)
    table = pa.table({name: values for name in names if (values := getattr(block, name)) is not None})
    summary: Summary = {"scores": [scores], "tables": [table]}
    for k in range(len(weights)):
        y = block.y if set_labels is None else set_labels[k][block.code]
        summary[f"counts {k}"] = ScoreCounts.from_scores(y, scores[:, k], block.weight).within_bounds()
    return summary


def read_threshold_rows(run: str, about: Json) -> ScoreCounts:
    """Return the counts of the scores of the rows that set the threshold of a run.

    `about` is the content of the run's ``metrics.json``.
    """
    table, where, names = about["threshold_rows"], f"{run}/{THRESHOLD_ROWS}", ("score", "pos", "neg")
    columns = read_parquet(where, dict.fromkeys(names, pa.float64()))
    values, pos, neg = (columns[name].to_numpy() for name in names)
    if not (len(values) and (np.diff(values) > 0).all() and min(pos.min(), neg.min()) >= 0):
        raise InputError(f"{shown(where)} is damaged: its scores do not ascend, or a weight is negative. {REPAIR}")
    return ScoreCounts(values, pos, neg, *(table[name] for name in ("n_pos", "n_neg", "weighted", "shift")))


def score_columns(classes: Sequence[str]) -> list[str]:
    """Return the names of the columns of scores. For several classes, each class has a column."""
    return [f"score {name}" for name in classes] or ["score"]


def read_scores(run: str) -> pd.DataFrame:
    """Return a table of the test rows of a run, sorted by row id.

    Its columns are row id, label and score, and weight, group, grade and cost if there are some. Scores are those of the run's
    model. For several classes, the label is a string, and each class has a score.

    Raises
    ------
    InputError
        If there are no scores, as in a run without test rows, or if the file is damaged.
    """
    about = read_metrics(run)
    several, old = "classes" in about, about.get("score") != DECISION

    def optional(name: str) -> Any:
        return pa.string() if name.startswith(GROUP_PREFIX) else OPTIONAL.get(name)

    columns = score_columns([row["name"] for row in about.get("classes", ())])
    needed = {ROW_ID: pa.int64()} | ({"label": pa.string()} if several else {"y": pa.int8()})
    table = read_parquet(f"{run}/{SCORES}", needed | dict.fromkeys(columns, pa.float64()), optional)
    if old and not several:  # runs of older versions stored X w
        if about.get("threshold") is None:
            raise InputError(f"{shown(run)} is damaged: its {METRICS} has no threshold. {REPAIR}")
        table["score"] -= about["threshold"]
    elif old:
        model = load_model(run)
        table[columns] = (table[columns] + [weights.intercept for weights in model.weights]) / model.spreads
    return table.sort_values(ROW_ID, ignore_index=True)


def table_counts(table: pd.DataFrame) -> ScoreCounts:
    """Return the counts of the scores in a table of test rows of two classes, as returned by `read_scores`."""
    return ScoreCounts.from_scores(table["y"], table["score"], table.get("weight"))


def members_of(labels: ndarray, classes: Sequence[str], *, topics: bool) -> ndarray:
    """Return whether each row has each class, bool of shape (n_samples, n_classes).

    With topics, the classes in a label are separated by commas.
    """
    codes, texts = pd.factorize(labels)
    members = np.array(
        [[name in (text.split(",") if topics else [text]) for name in classes] for text in texts], dtype=bool
    )
    return members.reshape(-1, len(classes))[codes]


def max_fpr_of(model: LinearModel, run: str) -> float | None:
    """Return the false positive rate up to which the model of a run was trained. None if it was trained over all pairs."""
    parameters = model.about.get("parameters")
    if not isinstance(parameters, dict):
        return None
    share, number = (parameters.get(name) for name in ("max_fpr", "max_false_positives"))
    if isinstance(number, int) and exists(f"{run}/{METRICS}"):
        n_neg = read_metrics(run).get("n_neg", 0)
        share = number / n_neg if n_neg > 0 else None
    return float(share) if isinstance(share, int | float) and 0 < share < 1 else None
