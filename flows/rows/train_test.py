"""Training and test rows of a data set, split and encoded, and as blocks of the engine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aucdist.data.dataset import Schema
from aucdist.data.label_sets import LabelSets
from aucdist.data.preprocess import Preprocessor
from aucdist.data.shards.reading import ParallelMap
from aucdist.data.sources import Source
from aucdist.engine.classes import AnyBlocks, ClassBlocks
from flows.compute.workers import Workers
from flows.config.data import CacheMode, DataConfig
from flows.progress.console import RunObserver
from flows.rows.rows import AS_READ, Encoding, Rows


@dataclass(frozen=True, eq=False)
class TrainTestBlocks:
    """Training rows and test rows as blocks of the engine, of two classes or of several."""

    train: AnyBlocks
    test: AnyBlocks | None


@dataclass(frozen=True, eq=False)
class ClassTables:
    """The tables of sets of classes that training rows and test rows have: those of the test may have more sets."""

    train: LabelSets
    test: LabelSets

    def only(self, which: Sequence[int]) -> "ClassTables":
        """Return the tables with some classes."""
        return ClassTables(self.train.only(which), self.test.only(which))


@dataclass(frozen=True, eq=False)
class TrainTestRows:
    """Training and test rows of a data set, with the same encoding.

    `fingerprint`: tells this version of the data from others.
    `preprocessor`: the encoding that `train` and `test` have.
    `tables`: where each class is fitted against the rest.
    """

    name: str
    source: Source
    schema: Schema
    fingerprint: str
    train: Rows
    test: Rows | None
    preprocessor: Preprocessor = AS_READ
    tables: ClassTables | None = None

    def split(self, config: DataConfig, parallel_map: ParallelMap) -> "TrainTestRows":
        """Return the rows with the test rows split off, if there are some."""
        if config.test is None or config.test.is_apart:
            return self
        n_classes = None
        if self.tables is not None:
            n_classes = self.tables.train.n_classes if self.tables.train.exclusive else 1
        train, test = self.train.split(config.test, self.schema, n_classes, parallel_map)
        return replace(self, train=train, test=test)

    def without_groups(self, config: DataConfig) -> "TrainTestRows":
        """Return the rows without the groups that only the split was to keep whole: pairs are not rows of one group."""
        if config.test is None or config.test.groups is None:
            return self
        return replace(self, train=self.train.without_groups(), test=self.test and self.test.without_groups())

    def encode(self, config: DataConfig, parallel_map: ParallelMap) -> "TrainTestRows":
        """Return the rows with their features encoded as configured; the encoding is learnt from the training rows alone."""
        preprocessor = Encoding(config, self.schema).fit(self.train.each(parallel_map))
        test = None if self.test is None else self.test.transform(preprocessor)
        return replace(self, train=self.train.transform(preprocessor), test=test, preprocessor=preprocessor)

    def partition(self, cache: CacheMode, workers: Workers, observer: RunObserver) -> TrainTestBlocks:
        """Partition the rows into blocks: in the workers' memory, or streamed, as `cache` says."""
        train = self.train.partition("training", self.schema, cache, workers, observer)
        train.feature_names = self.schema.feature_names
        test = None if self.test is None else self.test.partition("test", self.schema, cache, workers, observer)
        if self.tables is None:
            return TrainTestBlocks(train, test)
        of_classes = None if test is None else ClassBlocks(test, self.tables.test)
        return TrainTestBlocks(ClassBlocks(train, self.tables.train), of_classes)

    def without_copies(self) -> "TrainTestRows":
        """Return the rows without the copies of what was parsed, which the blocks that were made of them do not need."""
        test = None if self.test is None else self.test.without_copies()
        return replace(self, train=self.train.without_copies(), test=test)

    def size(self) -> dict[str, int]:
        """Return the number of training rows and of features, and the bytes that they take in memory."""
        return {"rows": self.train.n_samples, "features": self.train.n_features, "bytes": self.train.n_bytes}
