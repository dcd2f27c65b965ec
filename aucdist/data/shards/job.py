"""The job of a sharding: what every worker must know to do its part, and its file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.data.checked import CHECKED, Sha256, parse_checked
from aucdist.data.shards.manifest import below
from aucdist.data.shards.permutation import permuted
from aucdist.data.shards.reading import BlockReader, parse_reader
from aucdist.data.storage import files

JOB = "job.json"


@dataclass(frozen=True)
class ShardJob:
    """What every worker must know to do its part.

    `work`: the work folder, which is in the folder of the shards.
    `origin`: what the manifest will state of the rows' origin.
    `urls`: those with secrets, which are not in the file of the job: they travel with each task.
    `items`: what `aucdist.data.shards.sharding.route` takes for each part: what the survey kept of it, or its number
        where an earlier run made the survey.
    """

    work: str
    reader: BlockReader
    n_shards: int
    seed: int
    origin: dict[str, Any]
    urls: tuple[str, ...] = ()
    items: Sequence[Any] = field(default=(), compare=False)

    @property
    def target(self) -> str:
        """The folder of the shards."""
        return self.work.rpartition("/")[0]

    @property
    def url(self) -> str:
        """The file from which workers read the job."""
        return below(self.work, JOB)

    def shards_of(self, block: Block, index: int) -> np.ndarray:
        """Return the shard of each row of a part.

        `index`: its number: the rows of the parts before it, class by class, are counted first.
        Returns an array of shape (n_samples,), int64.
        """
        reader, n_neg = self.reader, self.reader.n_samples - self.reader.n_pos
        pos_before = sum(reader.positives[:index])
        shards = np.empty(block.n_samples, dtype=np.int64)
        for label, n, before, first in (
            (-1, n_neg, sum(reader.rows[:index]) - pos_before, 0),
            (1, reader.n_pos, pos_before, n_neg),
        ):
            of_class = np.flatnonzero(block.y == label)
            numbers = before + np.arange(len(of_class))
            shards[of_class] = (first + permuted(numbers, n, 2 * self.seed + (label > 0))) % self.n_shards
        return shards


@dataclass(frozen=True)
class _JobFile:
    """What is in the file of a job."""

    __pydantic_config__: ClassVar = CHECKED

    reader: dict[str, Any]
    n_shards: Annotated[int, Field(ge=1, le=10**6)]
    seed: int
    origin: dict[str, Any]
    key: Sha256


def write_job(job: ShardJob, key: str) -> None:
    """Write the file of a job, without the secrets of URLs; `key` is that of its request."""
    content = _JobFile(job.reader.to_json(), job.n_shards, job.seed, job.origin, key)
    files.write_bytes(job.url, json.dumps(vars(content)).encode())


def read_job(url: str, urls: tuple[str, ...]) -> tuple[ShardJob, str]:
    """Return the job of a file, and the key of its request.

    `urls`: those that have secrets.
    Raises InputError if the file is missing or damaged.
    """
    where = files.shown(url)
    known = parse_checked(files.read_bytes(url), _JobFile, where)
    reader = parse_reader(known.reader, where)
    job = ShardJob(
        url.rpartition("/")[0], reader, known.n_shards, known.seed, known.origin, urls, range(reader.n_blocks)
    )  # fmt: skip
    return job, known.key
