"""The command `watch`: compare a batch with the training rows, and its labelled rows with the test rows of the run."""

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from aucdist.data.formats.parts import StoredPart
from aucdist.data.own_files import ROW_ID, jsonable, read_json, read_parquet
from aucdist.data.shards.reading import SavedReader, fingerprint_of, index_of, open_rows
from aucdist.data.sources import Source
from aucdist.data.storage import files
from aucdist.data.storage.faults import StorageError
from aucdist.data.storage.files import absolute
from aucdist.drift.batch import BatchCounts, compare_with_profile, metric_alarms, performance, performance_of_classes
from aucdist.drift.profile import Profile
from aucdist.errors import InputError, Json, counted, printable
from aucdist.metrics.decisions import confusion
from aucdist.metrics.guarantees import ALARM_E_VALUE, BAD_ROWS, allowed_share, evidence_against
from aucdist.model import batch_scoring
from aucdist.model.files import digest_of_model, model_folder
from aucdist.model.held_out import load_with_seen
from aucdist.model.linear_model import LinearModel
from aucdist.report.watch import alarm_text, evidence_text, metric_text
from aucdist.store import lease, read_version
from flows.compute.clusters import Workers, started
from flows.config.cluster import ClusterOption, S3Option
from flows.config.data import UnlabelledRef, batch_name, source_of
from flows.config.loading import Cli, FileOption, FolderArgument, Name, Strict, UrlOption
from flows.progress import RunObserver
from flows.run_folder.folder import (
    METRICS,
    SCORES,
    max_fpr_of,
    members_of,
    read_metrics,
    read_scores,
    score_columns,
    table_counts,
)
from flows.watch_state import Identity, WatchState, read_labels

_model_at = functools.lru_cache(maxsize=2)(load_with_seen)
"""A cached function, so that a worker loads a model once for all parts of a batch."""


class WatchConfig(Strict):
    """A batch of rows to compare with the training rows of a model, or labels of a batch."""

    model: FolderArgument
    """A run folder, a model, a model store, or a version in a store, such as store@3: a folder or URL."""
    data: Annotated[UnlabelledRef | None, Cli(position=2, data=True)] = None
    """The rows of the batch. They need no label."""
    scores: UrlOption = None
    """The scores of these rows, as `aucdist score` writes them. By default the rows are scored."""
    labels: FileOption = None
    """The labels of a batch: a Parquet or CSV file with `row_id` and the label."""
    alerts_only: bool = False
    """Only alerts have labels, so AUC, partial AUC and recall raise no alarm."""
    batch: Annotated[Name | None, Cli(metavar="NAME")] = None
    """The name of the batch. By default it is the name of the data, or for labels the last batch."""
    state: UrlOption = None
    """The folder or URL of the results of all batches. By default it is `watch` in the store."""
    cluster: ClusterOption
    """Where the rows are scored: a file in configs/cluster, or a path. By default it is this process."""
    s3: S3Option
    """How s3:// URLs are reached."""

    def _check(self) -> None:
        if not (self.data or self.labels):
            raise InputError(
                "there is nothing to watch: name the rows of a batch, or give --labels of one that was watched"
            )
        if self.scores and not self.data:
            raise InputError("`scores` belong to the rows of a batch: name the rows as well")
        if self.alerts_only and not self.labels:
            raise InputError("--alerts-only says which rows have labels: give --labels as well")


class Watched(NamedTuple):
    """The model of a watch, and what its batches are compared with.

    Attributes
    ----------
    folder : str
        The folder of the model.
    run : str
        The folder with the metrics of the model's run and the scores of the test rows.
    digest : str
        A digest that identifies the model, wherever it is stored.
    version : int or None
        The version of the model in its store, or None if it is not in a store.
    model : LinearModel
        The model.
    profile : Profile
        The profile of the training rows.
    state : WatchState
        The folder of the watch.
    alerts_only : bool
        Whether only alerts have labels.
    """

    folder: str
    run: str
    digest: str
    version: int | None
    model: LinearModel
    profile: Profile
    state: WatchState
    alerts_only: bool


def watch(config: WatchConfig, observer: RunObserver) -> Json:
    """Compare a batch with the training rows, and the metrics of its labelled rows with those of the test rows of the run.

    Raises
    ------
    InputError
        If the configuration, the model, the rows or the labels are wrong.
    """
    with started(config, "watch", observer) as (stages, workers):
        watched = stages("open model", open_watched, config)
        batch = config.batch
        if config.data:
            batch = stages("compare rows", compare_rows, config, watched, workers, observer)
        if config.labels and (not config.data or watched.state.read(batch)["rows"]):
            batch = stages("join labels", join_labels, config.labels, batch, watched)
        page = stages("page", watched.state.write_page, f"Watching {files.shown(config.model)}")
    assert batch  # the configuration requires rows or labels
    return batch_result(watched.state, batch, page) | {"seconds": stages.elapsed()}


def batch_result(state: WatchState, batch: str, page: str) -> Json:
    """Return what ``aucdist watch --json`` prints about a batch."""
    record, known = state.read(batch), state.performance(batch)
    return {
        "batch": batch, "version": record["version"], "rows": record["rows"],
        "alarms": record["comparison"]["alarms"] + (known["alarms"] if known else []),
        "comparison": record["comparison"], "performance": known, "page": files.shown(page), "damaged": state.damaged,
    }  # fmt: skip


def watch_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist watch` prints."""
    known, score = result["performance"], result["comparison"]["score"]
    against = f"version {result['version']}" if result["version"] else "the model"
    of = "the score" if score.get("class") is None else f"the score of class {score['class']}, which has drifted most,"
    lines = [
        f"batch {result['batch']}: {counted(result['rows'], 'row')} against {against}, PSI of {of} {score['psi']:.3f}"
    ]
    if known:
        positive = f", {known['n_pos']:,} of them positive" if "n_pos" in known else ""
        lines.append(
            f"{known['labelled']:,} of {result['rows']:,} rows {'has' if known['labelled'] == 1 else 'have'} a label{positive}"
        )
        on_test_rows = (known["on_test_rows"] or {"metrics": {}})["metrics"]
        lines += [metric_text(name, value, on_test_rows.get(name)) for name, value in known["metrics"].items()]
        lines += [evidence_text(known["guarantee"])] if "guarantee" in known else []
    lines += result["damaged"]
    lines += [f"ALARM: {alarm_text(alarm)}" for alarm in result["alarms"]] or ["no alarms"]
    return [*lines, f"page: {result['page']}"]


def open_watched(config: WatchConfig) -> Watched:
    """Open the model and the state."""
    store, change = read_version(absolute(config.model))
    if not (change or config.state):
        raise InputError(
            f"{files.shown(config.model)} is not a model store, so there is no place for the results. Make a store with "
            "`aucdist promote RUN STORE`, or name a folder for the results with --state"
        )
    folder = store.folder_of(change) if change else absolute(model_folder(config.model))
    model, (profile, _) = load_with_seen(folder)
    run = folder if files.exists(f"{folder}/{METRICS}") else folder.removesuffix("/model")
    return Watched(
        folder,
        run,
        digest_of_model(folder),
        change.version if change else None,
        model,
        profile,
        WatchState(absolute(config.state or f"{store.url}/watch")),
        config.alerts_only,
    )


def compare_rows(config: WatchConfig, watched: Watched, workers: Workers, observer: RunObserver) -> str:
    """Count the rows of a batch in the bins of the profile, write the record, and return the name of the batch."""
    assert config.data is not None
    source, state = batch_scoring.source_for_scoring(source_of(config.data), watched.model).pinned(), watched.state
    batch = config.batch or batch_name(config.data)
    identity = Identity(data=fingerprint_of(source), model=watched.digest)
    rerun = files.exists(state.at("batches", batch))
    # Without rows, the batch could not be read before, and is replaced.
    if rerun and (before := state.read(batch))["rows"]:
        if before["identity"] == identity:
            return batch  # the same command was run before
        raise InputError(
            f"batch {batch} was watched already, with other rows or another model: name this one with --batch"
        )
    scores = absolute(config.scores) if config.scores else None
    alarms = []
    try:
        counts, missing, unknown = _batch_counts(source, batch, identity, scores, watched, workers, observer)
    except UnreadableRows as error:
        counts, missing, unknown = BatchCounts.none(watched.profile), {}, {}
        text = printable(f"{error}{'. Their labels were not added' if config.labels else ''}")
        alarms = [{"what": "unreadable", "column": None, "value": 1.0, "p": 0.0, "text": text}]
    if source.unknown == "error":  # a category is neither in the training rows nor declared
        alarms += [{"what": "new", "column": name, "value": n / counts.rows, "p": 0.0} for name, n in unknown.items()]
    comparison = jsonable(compare_with_profile(watched.profile, counts))
    comparison["alarms"] = alarms + comparison["alarms"]
    record = {
        "format": 1, "batch": batch, "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "version": watched.version,
        "identity": identity, "rows": counts.rows, "scores": scores, "missing": missing, "unknown": unknown,
        "comparison": comparison,
        "number": 1 + max((other.get("number", 0) for other in state.batches().values()), default=0),
    }  # fmt: skip
    if rerun:
        state.write("batches", batch, record)
    else:
        state.create(batch, record)
    return batch


class UnreadableRows(InputError):
    """The rows of a batch cannot be read like the training rows. This is an alarm about drift, and not a mistake of the user."""


@contextmanager
def _unreadable() -> Iterator[None]:
    try:
        yield
    except StorageError:  # storage that cannot be reached is not a sign of drift
        raise
    except InputError as error:
        raise UnreadableRows(str(error)) from None


def _batch_counts(
    source: Source,
    batch: str,
    identity: Identity,
    scores: str | None,
    watched: Watched,
    workers: Workers,
    observer: RunObserver,
) -> tuple[BatchCounts, dict[str, int], dict[str, int]]:
    """Return the counts of the rows of a batch, and the numbers of missing and of unknown values of each column."""
    state, parallel_map = watched.state, workers.parallel_map(observer)
    if "unknown" in source.format_of().fields and source.unknown == "error":
        source = source.model_copy(update={"unknown": "ignore"})
    with _unreadable():
        reader = open_rows(
            source,
            each=parallel_map,
            place_on_workers=workers.place,
            schema=watched.model.schema,
            labelled=False,
            name=batch,
        )
    if scores:
        where = files.shown(scores)
        if not files.exists(f"{scores}/{batch_scoring.DONE}"):
            raise InputError(f"{where} has no complete scores: run `aucdist score` to its end, or leave --scores out")
        done = read_json(f"{scores}/{batch_scoring.DONE}", batch_scoring.ScoringSummary)
        if batch_scoring.read_scoring(scores).model_sha256 != watched.digest:
            raise InputError(f"{where} has scores of another model: name the one that made them, or leave --scores out")
        if (done["rows"], done["parts"]) != (reader.n_samples, reader.n_blocks):
            raise InputError(
                f"{where} has scores of {done['rows']:,} rows, but the batch has {reader.n_samples:,}: name those of the batch"
            )
    saved = reader.saved(state.url)
    try:
        count = functools.partial(count_part, saved, watched.folder, scores, state.scores(batch, identity))
        counts = sum(parallel_map(count, reader.items), BatchCounts.none(watched.profile))
    finally:
        files.remove(saved.url)
    return counts, reader.missing, reader.unknown


def count_part(
    saved: SavedReader, folder: str, scores: str | None, new_scores: str, item: int | StoredPart
) -> BatchCounts:
    """Count the rows of one part on a worker.

    If no scores are given, the rows are scored and the scores are written.
    """
    model, (profile, _) = _model_at(folder)
    index, columns = index_of(item), score_columns(model.classes)
    with _unreadable():
        block = saved(item)
        rows = model.encoded(block.X)
        if scores is None:
            values = model.scores(rows)
    if scores is None:
        table = pd.DataFrame(np.atleast_2d(values.T).T, columns=columns)
        table.insert(0, ROW_ID, block.row_id)
        files.write_bytes(_part_url(new_scores, index), table.to_parquet(index=False, compression="zstd"))
    else:
        table = _read_table(_part_url(scores, index), columns)
        if not np.array_equal(table[ROW_ID].to_numpy(), block.row_id):
            raise InputError(
                f"{files.shown(_part_url(scores, index))} has scores of other rows than the batch: name the scores of "
                "this batch, or leave --scores out"
            )
        values = table[columns].to_numpy()
    return BatchCounts.of(profile, rows, values)


def join_labels(url: str, batch: str | None, watched: Watched) -> str:
    """Add labels to those of a batch, compute the metrics of the labelled rows, and return the name of the batch."""
    state = watched.state
    records = state.batches()
    if not batch:
        if not records:
            raise InputError(
                f"no batch was watched in {files.shown(state.url)}: watch the rows first, then their labels"
            )
        if state.damaged:
            raise InputError(f"the last batch cannot be determined, so name one with --batch: {state.damaged[0]}")
        batch = list(records)[-1]
    names = [name for name, record in records.items() if record["rows"]]
    if batch not in names:
        raise InputError(f"no rows of batch {batch!r} were watched: choose one of {', '.join(names[-10:]) or 'none'}")
    record = records[batch]
    if record["identity"]["model"] != watched.digest:
        version = record["version"]
        other = f"version {version}: name it, as in URL@{version}" if version else "another model: name that one"
        raise InputError(f"batch {batch} was watched with {other}")
    new, missing = read_labels(absolute(url), watched.model)
    place = state.scores(batch, record["identity"])
    folder = record["scores"] or (
        place if files.exists(place) else place.rpartition("/")[0]
    )  # where 0.4.0 wrote the scores
    parts = [name for name in files.names_in(folder) if name.startswith("part-") and name.endswith(".parquet")]
    if not parts:
        raise InputError(
            f"the scores of batch {batch} are gone: {files.shown(folder)} has none. Watch the rows of the batch again"
        )
    scores = pd.concat(
        [_read_table(f"{folder}/{name}", score_columns(watched.model.classes)) for name in parts], ignore_index=True
    )
    if strangers := int((~new[ROW_ID].isin(scores[ROW_ID])).sum()):
        raise InputError(
            f"{files.shown(url)}: {counted(strangers, 'label')} {'has' if strangers == 1 else 'have'} a row_id that batch "
            f"{batch} does not have ({counted(record['rows'], 'row')}). If they are labels of another batch, name it with --batch"
        )
    # Two processes at the same time would overwrite each other's labels.
    with lease(state.url, f"watch --labels of batch {batch}"):
        _add_labels(new, missing, batch, scores, watched)
    return batch


def _add_labels(new: pd.DataFrame, missing: int, batch: str, scores: pd.DataFrame, watched: Watched) -> None:
    """Add labels to the known labels of a batch, and compute the metrics of the labelled rows."""
    state = watched.state
    before = state.labels(batch, several=bool(watched.model.classes))
    known = (
        (pd.concat([before, new]) if len(before) else new)
        .drop_duplicates(ROW_ID, keep="last")
        .sort_values(ROW_ID, ignore_index=True)
    )
    labelled = scores.merge(known, on=ROW_ID, how="inner", validate="one_to_one")
    # The false positive rate up to which the model was trained, and its performance on the test rows of its run.
    run, model, on_test_rows = watched.run, watched.model, None
    max_fpr = None if model.classes else max_fpr_of(model, run)
    if files.exists(f"{run}/{SCORES}"):
        on_test_rows = _performance(watched, read_scores(run), "label" if model.classes else "y", max_fpr)
    now = _performance(watched, labelled, "y", max_fpr)
    test = count_against_guarantee(watched, batch, labelled, scores)
    alarms = metric_alarms(
        now, None if watched.alerts_only else on_test_rows, guaranteed=test["metric"] if test else None
    )
    if test:
        now["guarantee"] = test
        if test["evidence"] >= ALARM_E_VALUE:
            alarms.append(
                {"what": "guarantee", "column": test["metric"], "value": test["value"], "p": 1.0 / test["evidence"]}
            )
    files.write_bytes(state.at("labels", batch, ".parquet"), known.to_parquet(index=False))
    state.write(
        "performance",
        batch,
        jsonable(
            now
            | {
                "labelled": len(labelled),
                "unlabelled": len(scores) - len(labelled),
                "missing": missing,
                "new": len(known) - len(before),
                "max_fpr": max_fpr,
                "on_test_rows": on_test_rows,
                "alarms": alarms,
            }
        ),
    )


def _performance(watched: Watched, rows: pd.DataFrame, label: str, max_fpr: float | None) -> Json:
    """Return the metrics of rows with scores and labels.

    Labels are -1 and +1. For several classes, they are the names of the classes.
    """
    model, labels = watched.model, rows[label].to_numpy()
    scores = rows[score_columns(model.classes)].to_numpy()
    if not model.classes:
        return performance(labels, scores[:, 0], max_fpr, model.probability)
    return performance_of_classes(model.classes, members_of(labels, model.classes, topics=model.topics), scores)


def count_against_guarantee(watched: Watched, batch: str, labelled: pd.DataFrame, scores: pd.DataFrame) -> Json | None:
    """Test the guarantee of the threshold on labelled rows.

    Parameters
    ----------
    watched : Watched
        The model of the watch.
    batch : str
        The name of the batch.
    labelled : DataFrame
        The labelled rows of the batch with their scores.
    scores : DataFrame
        The scores of all rows of the batch, because a guarantee of alerts needs no labels.

    Returns
    -------
    dict or None
        ``metric`` and ``guaranteed``. ``bad`` and ``rows`` of this batch. ``evidence``, the e-value against the guarantee from
        all batches of the model, and ``value``, the metric over these batches. None if there is no guarantee, as for several
        classes.
    """
    run = watched.run
    about = read_metrics(run) if files.exists(f"{run}/{METRICS}") else {}
    guarantee = (about.get("operating_point") or {}).get("guarantee")
    if not guarantee:
        return None
    name, guaranteed = guarantee["metric"], guarantee["guaranteed"]
    bad, rows = (int(n) for n in BAD_ROWS[name](confusion(table_counts(labelled), 0.0)))
    if name == "alerts":
        bad, rows = int((scores["score"] > 0).sum()), len(scores)
    test = {"metric": name, "guaranteed": guaranteed, "bad": bad, "rows": rows}
    tests = watched.state.guarantee_tests(watched.digest, batch, test)
    all_bad, all_rows = ([test[key] for test in tests] for key in ("bad", "rows"))
    share = sum(all_bad) / max(sum(all_rows), 1)
    return test | {
        "evidence": min(evidence_against(all_bad, all_rows, allowed_share(name, guaranteed)), 1e300),
        "value": 1.0 - share if name in ("precision", "recall") else share
    }  # fmt: skip


def _part_url(folder: str, index: int) -> str:
    return f"{folder}/part-{index:05d}.parquet"


def _read_table(url: str, columns: Sequence[str]) -> pd.DataFrame:
    return read_parquet(url, {ROW_ID: pa.int64()} | dict.fromkeys(columns, pa.float64()))
