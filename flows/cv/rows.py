"""The rows of a search: opened, encoded as far as is the same for every fold, and cut."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.search.splits import Folds
from aucdist.selection.folds import refuse_straddling
from aucdist.selection.groups import codes, duplicates, take_column
from flows.compute.lazy_rows import Remote, prepared
from flows.compute.map_items import parallel_map
from flows.config.data import DataConfig
from flows.cv.config import CvConfig, FoldsConfig
from flows.cv.store import Apart, Encoding, Held, Store, each_on, ids_and_labels
from flows.progress.console import RunObserver
from flows.train import file_parts as direct
from flows.train.stages import (
    Opened,
    Placed,
    encoded,
    fitted,
    is_sharded,
    open_shards,
    place_rows,
    place_shards,
    read_data,
    split_and_scale,
)

OF_A_ROW = ("none", "unit-row")  # these scalings learn nothing from other rows


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of a search.

    Attributes
    ----------
    opened : Opened
        Training and test rows as they were read.
    data : DataConfig
    cuts : Cuts
    """

    opened: Opened[Any]
    data: DataConfig
    cuts: Folds

    def n_blocks(self, wanted: int | None) -> int:
        """Return the number of blocks of the training rows, given what was asked for."""
        return self.opened.n_blocks(wanted)

    @property
    def encoding(self) -> Encoding | None:
        """What is left to every fold, for it learns from the rows it trains on; None if that is nothing."""
        if self.data.scale in OF_A_ROW and self.data.impute == "refuse":
            return None
        return Encoding(self.data, self.opened.schema)

    def store(self, wanted: int | None, client: Any) -> Store:
        """Return the training rows in blocks: encoded where that learns nothing from other rows, else as they were read."""
        train, whole = self.opened.train, Encoding(self.data, self.opened.schema)
        if isinstance(train, Remote):
            if self.encoding is None:
                blocks = range(train.n_blocks)
                train = prepared(train, whole.fitted(blocks, load=train.loader, each=each_on(client)))
            return Apart(train, client)
        if self.encoding is None:
            train = whole.fitted([train]).transform(train)
        return Held(train, self.opened.n_blocks(wanted))

    def encoded(self, client: Any, observer: RunObserver) -> Opened[Any]:
        """Return training and test rows as the model of all training rows sees them."""
        if isinstance(self.opened.train, Remote):
            as_they_are = self.data.model_copy(update={"test": None})  # the test rows are apart already
            return split_and_scale(self.opened, as_they_are, parallel_map(client, observer))
        return encoded(self.opened, self.data)


def open_any(config: CvConfig, observer: RunObserver) -> "Rows | Opened[Remote] | direct.FileParts":
    """Open the data as far as can be done without workers.

    See `open_rows`, `flows.train.stages.open_shards` and `flows.train.file_parts.cut`.
    """
    if config.data.direct:
        return direct.cut(config.data, config.blocks)
    return open_shards(config.data) if is_sharded(config.data) else open_rows(config, observer)


def cut_any(
    opened: "Rows | Opened[Remote] | direct.FileParts",
    config: CvConfig,
    client: Any,
    scratch: str,
    observer: RunObserver,
) -> Rows:
    """Cut what `open_any` has opened, if that has not been done."""
    if isinstance(opened, direct.FileParts):
        opened = direct.survey(opened, config.data, parallel_map(client, observer), scratch)
    return opened if isinstance(opened, Rows) else cut_remote(opened, config, client, observer)


def place_any(opened: Opened[Any], config: CvConfig, client: Any, scratch: str, observer: RunObserver) -> Placed:
    """Place all rows for the last fit."""
    if isinstance(opened.train, Remote):
        return place_shards(opened, config.cache, client, observer)
    return place_rows(opened, config.blocks, client, scratch, config.cache, observer)


def open_rows(config: CvConfig, observer: RunObserver) -> Rows:
    """Read the data into this process, and cut it.

    Neither encoding nor choice learns from a fold's held-out rows, nor from the test rows.

    Raises
    ------
    InputError
        If the data or the cuts cannot be made as the configuration says.
    """
    opened, groups, time = _without_keys(read_data(config.data), config.folds, observer)
    fitted([opened.train], opened.schema, config.data)  # what is wrong with all rows shows here
    return Rows(opened, config.data, _cuts(config, opened.train.row_id, opened.train.y, groups, time))


def cut_remote(opened: Opened[Remote], config: CvConfig, client: Any, observer: RunObserver) -> Rows:
    """Cut rows that are read block by block; their numbers and labels alone come to this process.

    Raises
    ------
    InputError
        If the cuts cannot be made as the configuration says.
    """
    folds = config.folds
    if folds.groups is not None or folds.time is not None or folds.duplicates == "together":
        raise InputError(
            "groups, time and duplicates need rows that are read into this process, not shards or `direct`"
        )
    raw = config.data.model_copy(update={"log1p": None, "scale": "none", "impute": "refuse"})
    opened = split_and_scale(opened, raw, parallel_map(client, observer))
    row_id, y = ids_and_labels(opened.train, client)
    return Rows(opened, config.data, _cuts(config, row_id, y, None, None))


def _cuts(
    config: CvConfig, row_id: np.ndarray, y: np.ndarray, groups: np.ndarray | None, time: np.ndarray | None
) -> Folds:
    folds = config.folds
    cuts = Folds(row_id, y, folds.number, folds.repeats, folds.seed, config.nested, groups, time)
    cuts.check()
    return cuts


def _without_keys(
    opened: Opened[Block], folds: FoldsConfig, observer: RunObserver
) -> tuple[Opened[Block], np.ndarray | None, np.ndarray | None]:
    """Take the columns of groups and time out of the features, and return their values on the training rows."""
    groups = time = None
    if folds.groups is not None:
        opened, of_train, of_test = _taken(opened, folds.groups)
        both = codes(np.concatenate((of_train, of_test)))
        sides = np.repeat([0, 1], [len(of_train), len(of_test)])
        refuse_straddling(both, sides, "training and test rows")
        groups = both[: len(of_train)]
    elif folds.duplicates == "together":
        groups = duplicates(opened.train)
        observer.note(f"{len(groups):,} training rows, {int(groups.max()) + 1:,} of them different")
    if folds.time is not None:
        opened, time, _ = _taken(opened, folds.time)
    return opened, groups, time


def _taken(opened: Opened[Block], name: str) -> tuple[Opened[Block], np.ndarray, np.ndarray]:
    values, train, schema = take_column(opened.train, opened.schema, name)
    if opened.test is None:
        return replace(opened, train=train, schema=schema), values, np.zeros(0)
    of_test, test, _ = take_column(opened.test, opened.schema, name)
    return replace(opened, train=train, test=test, schema=schema), values, of_test
