"""Open the rows of a data set, and check a configuration against them: monotonic constraints, and costs.

The rows are read into this process, or they are shards, or they are files whose parts the workers read.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from aucdist.data.block import Block
from aucdist.data.dataset import Schema
from aucdist.data.formats.base import feature_names
from aucdist.data.label_sets import LabelSets
from aucdist.data.shards.manifest import read_manifest
from aucdist.data.shards.reading import ParallelMap, open_rows, read
from aucdist.data.sources import Source, check_installed
from aucdist.data.storage.files import require
from aucdist.engine.blocks import Summary
from aucdist.engine.view import AnyBlocks
from aucdist.errors import InputError, Json
from aucdist.estimators.monotone import directions
from aucdist.metrics.decisions import COST_COLUMN, check_costs_not_zero
from flows.compute.clusters import Stages, Workers
from flows.config.data import DataConfig, configured_source, source_of
from flows.config.model import OperatingPointConfig
from flows.progress import RunObserver
from flows.rows.rows import LazyRows, TrainTestRows

MAX_BLOCKS = 2**16
MAX_GROUPS = 50
"""The largest number of values of a column that defines groups for an audit."""
OpenedRows = tuple[LazyRows, Schema, str]
"""The rows of a source, their schema, and the fingerprint of the data."""


class RowSource(NamedTuple):
    """A data set that has been opened as far as possible without workers.

    Attributes
    ----------
    n_blocks : int
        The number of blocks that the training rows are partitioned into.
    rows : TrainTestRows or None
        The training rows and test rows, or None if workers read them.
    prepare : callable
        ``prepare(workers, observer, stages)`` returns these rows, whether this process or workers read them.
    """

    n_blocks: int
    rows: TrainTestRows | None
    prepare: Callable[[Workers, RunObserver, Stages], TrainTestRows]


def open_source(config: DataConfig, n_blocks: int | None = None, encode: bool = True) -> RowSource:
    """Open a data set as far as possible without workers. Files are read into this process, unless workers will read them.

    Parameters
    ----------
    config : DataConfig
        The configuration of the data.
    n_blocks : int, optional
        The number of blocks that rows are partitioned into. By default, there is one for each 64 MiB. Each shard is one block.
    encode : bool, default=True
        Whether the features are encoded as configured, which may use all training rows. In a search, each fold encodes its own.

    Raises
    ------
    InputError
        If the data set cannot be opened as configured.
    """
    check_installed(ref.name for ref in (config, config.test) if ref is not None and ref.name is not None)
    if n_blocks is not None and n_blocks > MAX_BLOCKS:
        raise InputError(
            f"`blocks` is {n_blocks}; at most {MAX_BLOCKS} are possible, and a few for each worker are enough"
        )
    source = source_of(config)
    if source.is_sharded:
        if config.direct:
            raise InputError("shards are always read directly: leave `direct` out")
        if config.positive is not None:
            raise InputError("the classes of shards were chosen when they were written: leave `positive` out")
        if n_blocks is not None:
            n_shards = len(read_manifest(require(str(source.source))).shards)
            raise InputError(
                f"`blocks` is {n_blocks}, but {config.name or source.display_name} is sharded, and its "
                f"{n_shards} shards are the blocks: leave `blocks` out"
            )
        if (test := config.test_source) is not None and not test.is_sharded:
            raise InputError(
                "the training data are shards, so the test set has to be shards too: run `aucdist shard` on it"
            )
        unsplit = _train_and_test(config, partial(_open_blocks, Workers(), map, None))
        n_blocks = unsplit.train.n_blocks
    elif config.direct:
        unsplit, n_blocks = None, len(source.format_of().split(n_blocks))
    else:
        here = read_rows(config, n_blocks, encode=encode)
        return RowSource(here.train.n_blocks, here, lambda *_: here)

    def survey(workers: Workers, parallel_map: ParallelMap) -> TrainTestRows:
        """Parse each part once, in the process that will use it.

        This numbers the rows, and finds classes, features and categories.
        """
        return _train_and_test(config, partial(_open_blocks, workers, parallel_map, n_blocks))

    def prepare(workers: Workers, observer: RunObserver, stages: Stages) -> TrainTestRows:
        """Return the rows. The workers read them."""
        parallel_map = workers.parallel_map(observer)
        rows = unsplit or stages("look at the files", survey, workers, parallel_map)
        prepared: TrainTestRows = stages("split and scale", split_and_encode, rows, config, encode, parallel_map)
        return prepared

    return RowSource(n_blocks, None, prepare)


def split_and_encode(rows: TrainTestRows, config: DataConfig, encode: bool, parallel_map: ParallelMap) -> TrainTestRows:
    """Split off the test rows, if there are any, and encode the features unless `encode` is False.

    Raises
    ------
    InputError
        If the rows cannot be split. The message names the data and the label column.
    """
    try:
        rows = rows.split(config, parallel_map)
    except InputError as error:
        raise InputError(
            f"{rows.name}{'' if rows.source.label is None else f', label {rows.source.label!r}'}: {error}"
        ) from None
    return rows.without_groups(config).encode(config, parallel_map) if encode else rows


def read_rows(config: DataConfig, n_blocks: int | None = None, *, encode: bool = True) -> TrainTestRows:
    """Read a data set into this process, split it, and encode its features. The encoding is learnt from the training rows only.

    Raises
    ------
    InputError
        If the data set cannot be read, split or encoded as configured.
    """

    def read_here(source: Source, schema: Schema | None, name: str) -> OpenedRows:
        data = read(source, schema=schema, name=name)
        return LazyRows.of_block(data.block, n_blocks), data.schema, data.fingerprint

    rows = split_and_encode(_train_and_test(config, read_here), config, encode, map)
    if n_blocks is not None and n_blocks > rows.train.n_samples:
        raise InputError(
            f"`blocks` is {n_blocks}, but {rows.name} has {rows.train.n_samples} training rows: use at most as many"
        )
    return rows


def _train_and_test(config: DataConfig, open_rows: Callable[[Source, Schema | None, str], OpenedRows]) -> TrainTestRows:
    """Return training rows, and test rows if they are a separate data set.

    Parameters
    ----------
    config : DataConfig
        The configuration of the data.
    open_rows : callable
        Called as ``open_rows(source, schema, name)``. For test rows, the schema is that of the training rows.
    """
    source, test_source = configured_source(config).pinned(), config.test_source
    train, schema, fingerprint = open_rows(source, None, config.name or "")
    test, test_schema = None, schema
    if config.test is not None and test_source is not None:
        test_source = test_source.pinned()
        test, test_schema, _ = open_rows(test_source, schema, config.test.name or "")
    sets = test_sets = None
    if schema.classes:  # each class is fitted against the rest
        sets, test_sets = LabelSets.of_schema(schema), LabelSets.of_schema(test_schema)
    name = config.name or source.display_name
    rows = TrainTestRows(name, source, schema, fingerprint, train, test, test_source, sets=sets, test_sets=test_sets)
    if sets is None and train.n_pos in (0, train.n_samples):
        raise InputError(
            f"{name}: there is one class only in the training rows: add rows of the other class, or correct `positive`"
        )
    return rows


def _open_blocks(
    workers: Workers, parallel_map: ParallelMap, n_parts: int | None, source: Source, schema: Schema | None, name: str
) -> OpenedRows:
    """Open shards, or survey parts of files."""
    n_parts = None if schema else n_parts
    reader = open_rows(
        source, each=parallel_map, place_on_workers=workers.place, n_parts=n_parts, schema=schema, name=name
    )
    return LazyRows.of_reader(reader, workers.scratch), reader.schema, reader.fingerprint


def check_monotone(parameters: Iterable[Any], schema: Schema) -> None:
    """Raise an InputError if a value of `monotone` is not the name of a feature, or names a feature of categories or strings."""
    columns = [*schema.categories, *schema.hashed]
    unordered = {name: feature_names([name], schema.categories, schema.hashed) for name in columns}
    for monotone in parameters:
        directions(monotone, len(schema.feature_names), schema.feature_names, unordered)


def check_costs_of_rows(rows: AnyBlocks, point: OperatingPointConfig | None) -> None:
    """Raise an InputError if wrong decisions on a whole class cost nothing, because then no threshold is best.

    Parameters
    ----------
    rows : AnyBlocks
        The rows of the fit, of two classes or of several. They are read once.
    point : OperatingPointConfig or None
        The operating point.
    """
    if point is None or (costs := point.row_costs) is None:
        return
    sets = rows.sets
    n_labels = 2 if sets is None else sets.members.shape[0]
    label_costs = rows.all_blocks().sum(_costs_of_labels, n_labels)
    classes = {"": np.array([-1, 1])}
    if sets is not None:
        classes = {f"class {name!r}: ": sets.labels_against_rest(k) for k, name in enumerate(sets.names())}
    for name, labels in classes.items():
        negative_cost, positive_cost = (
            label_costs[labels == side].sum() if value == COST_COLUMN else value
            for side, value in ((-1, costs.false_positive), (1, costs.miss))
        )
        check_costs_not_zero(
            negative_cost, positive_cost, f"{name}operating_point.cost: in the cost column of the training rows, "
        )


def _costs_of_labels(block: Block, n_labels: int) -> Summary:
    """Add up the costs of the rows with each label.

    Labels are negative and positive, or the sets of classes.
    """
    assert block.cost is not None
    numbers = block.code if block.code is not None else (block.y > 0).astype(np.intp)
    return np.bincount(numbers, weights=block.cost * block.weights(), minlength=n_labels)


def named_groups(source: Source, columns: Sequence[str], row_id: np.ndarray) -> dict[str, np.ndarray]:
    """Return the values of some columns of the test rows as strings, which are empty if the value is missing.

    The files are read once more.

    Parameters
    ----------
    source : Source
        The source of the test rows, with the same versions of its tables.
    columns : sequence of str
        The names of the columns.
    row_id : ndarray
        The ids of the test rows.

    Raises
    ------
    InputError
        If there is no such column, if it has too many values, or if the rows are shards, which only store features.
    """
    if source.is_sharded:
        raise InputError(
            "audit.groups needs columns of the files, and shards have only features: leave `audit.groups` out"
        )
    names = list(columns)
    changes: Json = {"keep": names, "drop": None, "dates": {}, "hashed": {}, "groups": None, "cost_column": None}
    changes |= {"categorical": names, "missing": "keep", "features": None, "unknown": "ignore", "layout": "dense"}
    try:
        table = read(source.model_copy(update=changes))
    except InputError as e:
        raise InputError(f"audit.groups: {e}") from None
    X, positions = np.asarray(table.block.X), np.searchsorted(table.block.row_id, row_id)
    texts_of_columns, features = {}, table.schema.by_column()
    for column in columns:
        values = table.schema.categories.get(column, ())
        if not 0 < len(values) <= MAX_GROUPS:
            raise InputError(
                f"audit.groups: {column!r} has {len(values)} values, but from 1 to {MAX_GROUPS} can be reported: "
                "name another column"
            )
        texts_of_columns[column] = np.full(len(positions), "", dtype=object)
        for j, value in features.get(column, {}).items():
            texts_of_columns[column][X[positions, j] > 0] = value
    return texts_of_columns
