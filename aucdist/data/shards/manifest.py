"""The manifest of a sharded data set: what it consists of, and how a new one takes the place of the old.

In the folder of a data set lie

* ``shard-00000-<digest>.parquet``, ...: the rows;
* ``features-<digest>.parquet``: a row for each feature, with its name and its statistics within either class;
* ``manifest-<digest>.json``: a generation of the data set, with the checksums of the files above;
* ``CURRENT``: the name of the manifest that counts.

Every file but ``CURRENT`` is named after its content and written once, so whoever reads a data set while it is being replaced
reads the old one to its end. A generation is committed by creating its manifest and then pointing ``CURRENT`` to it.
"""

import functools
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from aucdist.data.dataset import Schema
from aucdist.data.shards.block_file import Form
from aucdist.data.shards.statistics import Statistics, from_table, to_parquet
from aucdist.data.storage import files
from aucdist.errors import InputError

FORMAT = 2
CURRENT = "CURRENT"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
GENERATION = re.compile(r"manifest-([0-9a-f]{16})\.json")


@dataclass(frozen=True)
class Stored:
    """A file of a data set: its name in the folder, its size in bytes, and its SHA-256."""

    file: str
    size: int
    sha256: str

    @classmethod
    def of(cls, data: bytes, stem: str, suffix: str = "parquet") -> "Stored":
        """Name a file after its content."""
        digest = hashlib.sha256(data).hexdigest()
        return cls(f"{stem}-{digest[:16]}.{suffix}", len(data), digest)


@dataclass(frozen=True)
class Shard(Stored):
    """A file of rows.

    Attributes
    ----------
    rows, positives : int
    memory : int
        Bytes of its block in memory.
    crc32 : int
        A checksum that is quick enough to be compared each time the shard is opened.
    values_at : int or None
        Where its dense values lie in one run of bytes, if they do.
    """

    rows: int
    positives: int
    memory: int
    crc32: int
    values_at: int | None = None


@dataclass(frozen=True)
class Manifest:
    """What a sharded data set consists of.

    Attributes
    ----------
    format : int
        Version of the layout on disk.
    layout, dtype : str
        ``dense`` or ``csr``; ``float32`` or ``float64``.
    weighted : bool
        Whether rows have weights.
    n_samples, n_features, n_pos, n_neg : int
        Totals.
    label : str
        Name of the label column, if it had one.
    positive, negative : tuple of str
        The classes that stand for +1 and for -1.
    categories, hashed : dict
        As in `Schema`.
    origin : dict
        Where the rows come from, in types of JSON: sources with their sizes and ETags, options of reading, seed, ...
    features : Stored
        The file with the names of the features, and their statistics.
    shards : tuple of Shard
        In the order of the blocks.
    url : str
        Where this generation lies. It is no part of the file.
    """

    format: int
    layout: str
    dtype: str
    weighted: bool
    n_samples: int
    n_features: int
    n_pos: int
    n_neg: int
    label: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    origin: dict[str, Any]
    features: Stored
    shards: tuple[Shard, ...]
    hashed: dict[str, int] = field(default_factory=dict)
    url: str = field(default="", compare=False)

    @property
    def form(self) -> Form:
        """What its blocks have in common."""
        return Form(self.layout, self.dtype, self.n_features, self.weighted)

    @property
    def folder(self) -> str:
        """The folder that it lies in."""
        return self.url.rpartition("/")[0]

    def url_of(self, stored: Stored) -> str:
        """Return the URL of one of its files."""
        return below(self.folder, stored.file)


def below(url: str, name: str) -> str:
    """Return the URL of a file in a folder."""
    return f"{url.rstrip('/')}/{name}"


def commit(
    url: str,
    schema: Schema,
    form: Form,
    shards: Sequence[Shard],
    *,
    statistics: Statistics | None = None,
    origin: dict[str, Any] | None = None,
) -> Manifest:
    """Make shards that are written already the data set at a place.

    Parameters
    ----------
    url : str
        The folder.
    schema : Schema
    form : Form
    shards : sequence of Shard
    statistics : Statistics, optional
        Of all rows.
    origin : dict, optional
        As in `Manifest`.

    Raises
    ------
    InputError
        If the place is not writable or cannot be reached.
    """
    data = to_parquet(schema.feature_names, statistics)
    features = Stored.of(data, "features")
    files.write_bytes(below(url, features.file), data)
    n_samples, n_pos = (sum(getattr(shard, key) for shard in shards) for key in ("rows", "positives"))
    manifest = Manifest(
        FORMAT, form.layout, form.dtype, form.weighted, n_samples, form.n_features, n_pos, n_samples - n_pos,
        schema.label, schema.positive, schema.negative, schema.categories, origin or {}, features, tuple(shards),
        schema.hashed,
    )  # fmt: skip
    content = asdict(manifest)
    del content["url"]
    data = json.dumps(content, indent=1).encode()
    name = Stored.of(data, "manifest", "json").file
    if not files.create_bytes(below(url, name), data):
        raise InputError(f"{files.shown(below(url, name))} is damaged; remove it, and start again")
    files.write_bytes(below(url, CURRENT), f"{name}\n".encode())
    return replace(manifest, url=below(url, name))


def read_manifest(url: str) -> Manifest:
    """Read the manifest of a sharded data set.

    Parameters
    ----------
    url : str
        The folder, whose current generation is meant, or one generation's `Manifest.url`.

    Raises
    ------
    InputError
        If there is none, or if it is damaged, of a newer version, or names files outside its folder.
    """
    if GENERATION.fullmatch(url.rpartition("/")[2]):
        return _generation(url)
    pointer = files.read_bytes(below(url, CURRENT)).decode(errors="replace").strip()
    if not GENERATION.fullmatch(pointer):
        raise InputError(
            f"{files.shown(below(url, CURRENT))} is damaged: {pointer[:80]!r} is not the name of a manifest"
        )
    return _generation(below(url, pointer))


@functools.lru_cache(maxsize=4)  # a generation never changes, and every block that is read asks for it
def _generation(url: str) -> Manifest:
    where = files.shown(url)
    data = files.read_bytes(url)
    if GENERATION.fullmatch(url.rpartition("/")[2])[1] != hashlib.sha256(data).hexdigest()[:16]:  # type: ignore[index]
        raise InputError(f"{where} is damaged: its checksum is not the one in its name")
    try:
        content = json.loads(data)
        version = content["format"]
        if isinstance(version, int) and version > FORMAT:
            raise InputError(f"{where} has format {version}; this aucdist reads up to {FORMAT}. Install a newer one")
        if version != FORMAT:
            raise ValueError(f"{version!r} is no format that can be read; shard the data again")
        manifest = replace(_from_json(content), url=url)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise InputError(f"{where} is damaged: {type(e).__name__}: {e}") from None
    for stored in (manifest.features, *manifest.shards):
        if not NAME.fullmatch(stored.file):
            raise InputError(f"{where}: {stored.file!r} is not the name of a file in its folder")
    return manifest


def _from_json(content: dict[str, Any]) -> Manifest:
    shards = tuple(Shard(**shard) for shard in content["shards"])
    manifest = Manifest(
        **content
        | {
            "shards": shards,
            "features": Stored(**content["features"]),
            "positive": tuple(content["positive"]),
            "negative": tuple(content["negative"]),
            "categories": {name: tuple(values) for name, values in content["categories"].items()},
        }
    )
    totals = (sum(s.rows for s in shards), sum(s.positives for s in shards))
    if totals != (manifest.n_samples, manifest.n_pos) or manifest.n_neg != manifest.n_samples - manifest.n_pos:
        raise ValueError("the totals are not the sums over the shards")
    if manifest.layout not in ("dense", "csr") or manifest.dtype not in ("float32", "float64"):
        raise ValueError("layout or type is none that is known")
    return manifest


def _features_of(manifest: Manifest) -> pa.Table:
    url = manifest.url_of(manifest.features)
    data = files.read_bytes(url)
    if hashlib.sha256(data).hexdigest() != manifest.features.sha256:
        raise InputError(f"{files.shown(url)} is truncated or altered: its checksum is not the one in the manifest")
    table = pq.read_table(pa.BufferReader(data))
    if table.num_rows != manifest.n_features:
        raise InputError(f"{files.shown(url)} has {table.num_rows} features; {manifest.n_features} are expected")
    return table


def read_schema(manifest: Manifest) -> Schema:
    """Read what the features and classes of a data set are called.

    Raises
    ------
    InputError
        If the file with the features is missing or altered.
    """
    names = tuple(_features_of(manifest)["name"].to_pylist())
    return Schema(names, manifest.label, manifest.positive, manifest.negative, manifest.categories, manifest.hashed)


def read_statistics(manifest: Manifest) -> Statistics | None:
    """Read the statistics of the features within either class; None where a data set has none.

    Raises
    ------
    InputError
        If the file with the features is missing or altered.
    """
    return from_table(_features_of(manifest), manifest.n_neg, manifest.n_pos)
