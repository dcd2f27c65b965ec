"""The job of a sharding: what every worker must know to do its part, its file, and the random order of the rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from aucdist.data.block import Block
from aucdist.data.checked import CHECKED, Sha256, parse_checked
from aucdist.data.shards.manifest import below
from aucdist.data.shards.reading import BlockReader, parse_reader
from aucdist.data.split import scrambled
from aucdist.data.storage import files

ROUNDS = 6


def permuted(numbers: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return the place of each number in a random order of 0, ..., n - 1.

    A Feistel network over the bits of a number is a permutation whatever its round function is; a number that it carries
    beyond n goes through it again until it comes back (cycle walking, as in Black and Rogaway, Ciphers with arbitrary
    finite domains, 2002; their prefix cipher is not needed, and the round function is a hash and not a cipher). At most
    three numbers in four lie beyond, so that takes four times on average at the worst.

    `numbers`: from 0 to n - 1.
    `n`: at most 2**62.
    Returns ndarray of int64: from 0 to n - 1; different numbers have different places.
    """
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    keys = scrambled(np.arange(ROUNDS), seed)
    places = numbers.astype(np.uint64)
    walking = np.arange(len(places))
    while len(walking):
        places[walking] = _encrypted(places[walking], np.uint64(half), keys)
        walking = walking[places[walking] >= np.uint64(n)]
    return places.astype(np.int64)


def _encrypted(x: np.ndarray, half: np.uint64, keys: np.ndarray) -> np.ndarray:
    """Return the numbers of 2 * half bits after all rounds: the halves change places, one mixed with a hash of the other."""
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = x >> half, x & mask
    for key in keys:
        left, right = right, left ^ (scrambled(right ^ key, 0) & mask)
    mixed: np.ndarray = (left << half) | right
    return mixed


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
