"""The rows of a search: read and encoded as far as is the same for every fold, and how they are cut."""

from dataclasses import dataclass, replace

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.search.cuts import Cuts
from aucdist.selection.folds import refuse_straddling
from aucdist.selection.groups import codes, duplicates, take_column
from flows.config import DataConfig
from flows.console import Watch
from flows.cv.config import CvConfig, FoldsConfig
from flows.cv.jobs import Encoding
from flows.stages import Opened, encoded, fitted, read_data

OF_A_ROW = ("none", "unit-row")  # these scalings learn nothing from other rows


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of a search.

    Attributes
    ----------
    opened : Opened
        Training and test rows as they were read.
    data : DataConfig
    block : Block
        The training rows: encoded where that learns nothing from other rows, else as they were read.
    encoding : Encoding or None
        What is left to every fold, for it learns from the rows it trains on.
    cuts : Cuts
    """

    opened: Opened[Block]
    data: DataConfig
    block: Block
    encoding: Encoding | None
    cuts: Cuts

    def n_blocks(self, wanted: int | None) -> int:
        """Return the number of blocks of the training rows, given what was asked for."""
        return self.opened.n_blocks(wanted)

    def encoded(self) -> Opened[Block]:
        """Return training and test rows as the model of all training rows sees them."""
        return encoded(self.opened, self.data)


def open_rows(config: CvConfig, watch: Watch) -> Rows:
    """Read the data and cut it. Neither encoding nor choice learns from a fold's held-out rows, nor from the test rows.

    Raises
    ------
    InputError
        If the data or the cuts cannot be made as the configuration says.
    """
    data, folds = config.data, config.folds
    if data.direct:
        raise InputError("a search reads the rows into this process first: leave `direct` out")
    opened, groups, time = _without_keys(read_data(data), folds, watch)
    train = opened.train
    cuts = Cuts(train.row_id, train.y, folds.number, folds.repeats, folds.seed, config.nested, groups, time)
    cuts.check()
    prepare = fitted([train], opened.schema, data)  # what is wrong with all rows shows here
    if data.scale in OF_A_ROW and data.impute == "refuse":
        return Rows(opened, data, prepare.transform(train), None, cuts)
    return Rows(opened, data, train, Encoding(data, opened.schema), cuts)


def _without_keys(
    opened: Opened[Block], folds: FoldsConfig, watch: Watch
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
        groups = _equal_rows(opened, watch)
    if folds.time is not None:
        opened, time, _ = _taken(opened, folds.time)
    return opened, groups, time


def _taken(opened: Opened[Block], name: str) -> tuple[Opened[Block], np.ndarray, np.ndarray]:
    values, train, schema = take_column(opened.train, opened.schema, name)
    if opened.test is None:
        return replace(opened, train=train, schema=schema), values, np.zeros(0)
    of_test, test, _ = take_column(opened.test, opened.schema, name)
    return replace(opened, train=train, test=test, schema=schema), values, of_test


def _equal_rows(opened: Opened[Block], watch: Watch) -> np.ndarray:
    groups = duplicates(opened.train)
    watch.note(f"{len(groups):,} training rows, {int(groups.max()) + 1:,} of them different")
    return groups
