"""The rows of a search: opened, without the columns of groups and time, and divided into folds."""

from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.shards.manifest import manifest_of
from aucdist.errors import InputError, Json
from aucdist.search.fold import check_measure
from aucdist.search.folds import Folds, SearchedClasses, searched_classes, smallest_class
from aucdist.selection.folds import refuse_straddling
from aucdist.selection.groups import codes, duplicates, names_of_codes, take_column
from flows.compute.clusters import Workers
from flows.config.data import DataConfig, source_of
from flows.cv.config import CvConfig
from flows.progress.console import RunObserver
from flows.rows.rows import Encoding, Rows, TrainTestRows
from flows.rows.source import RowSource, open_source


@dataclass(frozen=True, eq=False)
class SearchRows:
    """The data of a search.

    `rows`: as they were read, not encoded.
    `grouped`: whether the source says which rows are of one group.
    `lowest_grade`: of all rows, where labels are grades.
    `classes`: where each class is fitted against the rest.
    """

    rows: TrainTestRows
    data: DataConfig
    folds: Folds
    grouped: bool
    lowest_grade: float | None
    classes: SearchedClasses | None

    @property
    def size(self) -> dict[str, int]:
        """``n_pos``, ``n_neg`` and ``n_features`` of the training rows; of several classes those of the smallest one."""
        train = self.rows.train
        if self.classes is None:
            return {"n_pos": train.n_pos, "n_neg": train.n_samples - train.n_pos, "n_features": train.n_features}
        n_pos, n_neg = smallest_class(self.classes.sets, self.folds.y, self.folds.n_folds)
        return {"n_pos": n_pos, "n_neg": n_neg, "n_features": train.n_features}

    @property
    def fold_encoding(self) -> Encoding | None:
        """The encoding that each fold learns from its own training rows; None if nothing is learnt."""
        encoding = Encoding(self.data, self.rows.schema)
        return encoding if encoding.learns else None

    def training_rows(self, workers: Workers) -> Rows:
        """Return all training rows: as they were read if the folds learn the encoding, else encoded."""
        if self.fold_encoding is not None:
            return self.rows.train
        return replace(self.rows, test=None, calibration=None).encode(self.data, workers.parallel_map()).train


def open_search(config: CvConfig, observer: RunObserver) -> tuple[RowSource, SearchRows | None]:
    """Open the data of a search as far as possible without workers.

    Neither the encoding nor the choice of parameters learns from a fold's held-out rows, nor from the test rows.

    Returns the source, and its rows divided into folds if this process has them: errors show before a cluster starts.
    Raises InputError if the data or the folds cannot be made as configured.
    """
    data, of_folds = config.data, config.folds.time
    if of_folds is not None and data.test is not None and data.test.time in (of_folds, of_folds.removesuffix(".days")):
        data = data.model_copy(update={"test": data.test.model_copy(update={"keep": True})})  # the folds take it out
    source = open_source(data, config.blocks, encode=False)
    if source.needs_workers:
        if config.folds.groups is not None or config.folds.time is not None or config.folds.duplicates == "together":
            raise InputError(
                "folds by groups, time or duplicates need all rows here: read files instead of shards, and leave out `direct`"
            )
        return source, None
    assert source.rows is not None
    search_rows = make_folds(source.rows, config, Workers(), observer)
    # An error that concerns all rows is raised here.
    Encoding(config.data, search_rows.rows.schema).fit(search_rows.rows.train.each(map))
    return source, search_rows


def make_folds(rows: TrainTestRows, config: CvConfig, workers: Workers, observer: RunObserver) -> SearchRows:
    """Return the rows, divided into folds."""
    settings, groups, time, names = config.folds, None, None, None
    if settings.groups is not None:
        schema = rows.schema
        rows, of_train, of_test = _take_column(rows, settings.groups)
        values, side = np.concatenate((of_train, of_test)), np.repeat([0, 1], [len(of_train), len(of_test)])
        both, names = codes(values), names_of_codes(values, schema, settings.groups)
        refuse_straddling(both, side, "training and test rows", names)
        groups = both[: len(of_train)]
    elif settings.duplicates == "together":
        groups = duplicates(rows.train.block)
        observer.note(f"{len(groups):,} training rows, {int(groups.max()) + 1:,} of them different")
    if settings.time is not None:
        rows, time, _ = _take_column(rows, settings.time)
    row_id, y, whole = rows.train.gathered(workers.parallel_map(), "row_id", "label", "group")
    source = source_of(config.data)
    if manifest := manifest_of(source):
        grouped, graded = manifest.form.grouped, manifest.form.graded
    else:
        grouped, graded = source.groups is not None or source.qid == "use", source.labels == "grades"
    lowest = float(rows.schema.negative[0]) if graded else None
    check_measure(config.measure, grouped, lowest)
    in_split = config.data.test is not None and config.data.test.groups is not None
    if grouped or in_split:
        if groups is not None:
            whose = "the source's groups" if grouped else "the groups of the split"
            raise InputError(f"{whose} are kept whole in folds: leave out `folds.groups` and `duplicates: together`")
        groups = whole
        rows = rows if grouped else rows.without_groups(config.data)
    sets = rows.sets
    strata = None if sets is None else y
    folds = Folds(
        row_id, y, settings.number, settings.repeats, settings.seed, config.nested, groups, time, settings.gap_rows,
        settings.gap_time, strata, names,
    )  # fmt: skip
    folds.check()
    classes = None if sets is None else searched_classes(sets, y, folds, observer.note)
    return SearchRows(rows, config.data, folds, grouped, lowest, classes)


def _take_column(rows: TrainTestRows, name: str) -> tuple[TrainTestRows, np.ndarray, np.ndarray]:
    """Return the rows without a column, and its values on the training rows and on the test rows."""
    values: dict[str, np.ndarray] = {"test": np.zeros(0)}
    changes: Json = {}
    for name_of_part in ("train", "calibration", "test"):
        if (part := getattr(rows, name_of_part)) is not None:
            values[name_of_part], block, changes["schema"] = take_column(part.block, rows.schema, name)
            changes[name_of_part] = Rows.of_block(block, part.requested_blocks)
    return replace(rows, **changes), values["train"], values["test"]
