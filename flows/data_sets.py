"""The commands about data sets: list, show, download and check them, write them as shards, and simulate rows."""

import functools
from typing import Annotated, Literal

import yaml

from aucdist.data.shards import sharding
from aucdist.data.shards.manifest import Manifest, manifest_of, read_schema, verify_shard
from aucdist.data.shards.reading import ParallelMap, read
from aucdist.data.shards.sharding import Simulation
from aucdist.data.sources import Source, catalog, fetch, is_present
from aucdist.data.storage.files import absolute, local_path
from aucdist.data.storage.guard import check_disk
from aucdist.errors import InputError, Json, counted
from flows.compute.clusters import Stages, open_cluster, started
from flows.config.cluster import ClusterOption, S3Option
from flows.config.data import DataRef, source_from_name, source_of
from flows.config.loading import (
    AtLeastOne,
    Cli,
    CountOption,
    NameArgument,
    Names,
    Natural,
    PathOrUrl,
    Share,
    Strict,
    TextList,
    UrlOption,
)
from flows.progress import RunObserver

FEATURES_SHOWN = 10


class ListConfig(Strict):
    """The catalog of data sets."""


class ShowConfig(Strict):
    """A data set whose description is shown."""

    name: NameArgument
    """A data set of the catalog, or the folder or URL of shards."""


class FetchConfig(Strict):
    """Data sets of the catalog that are downloaded."""

    names: Annotated[Names, Cli(position=1)]
    """The names of data sets of the catalog."""
    mirror: UrlOption = None
    """A folder or URL with a copy of the files, under the same names as below AUCDIST_DATA. By default they are
    downloaded from where they were published."""


class VerifyConfig(Strict):
    """Data sets that are read and checked."""

    names: Annotated[TextList, Cli(position=1)]
    """Data sets of the catalog, or folders or URLs of shards. By default all that are on this machine are checked."""
    cluster: ClusterOption
    """Where the rows are read: a file in configs/cluster, or a path. By default it is this process."""


def list_data(config: ListConfig) -> Json:
    """Return the data sets of the catalog by name. A data set is present if it can be read without network access."""
    return {
        name: {
            "format": source.format, "rows": source.rows, "features": source.features, "present": is_present(source),
        }
        for name, source in sorted(catalog().items())
    }  # fmt: skip


def list_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist data list` prints."""
    return [
        f"{name:32} {entry['format']:10} {shape:>18}  {'here' if entry['present'] else 'absent'}"
        for name, entry in result.items()
        for shape in [f"{entry['rows'] or '?'} x {entry['features'] or '?'}"]
    ]


def show(config: ShowConfig) -> Json:
    """Return the catalog's entry and the manifest of a data set, without reading its rows."""
    name, source = source_from_name(config.name)
    entry = source.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    if manifest := manifest_of(source):
        schema = read_schema(manifest)
        names = list(schema.feature_names[:FEATURES_SHOWN])
        more = len(schema.feature_names) - len(names)
        entry |= {
            "manifest": manifest.url.rpartition("/")[2],
            "rows": manifest.n_samples,
            "features": manifest.block_schema.n_features,
            "feature_names": names + [f"and {more} more"] * (more > 0),
            **(
                {"classes": list(schema.classes), "topics": schema.topics}
                if schema.classes
                else {"positives": manifest.n_pos, "positive": list(schema.positive), "negative": list(schema.negative)}
            ),
            "weights": manifest.block_schema.weighted,
            **manifest.sizes(),
            "origin": manifest.origin,
        }
    return {name: entry | {"present": is_present(source)}}


def show_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist data show` prints."""
    return [yaml.safe_dump(result, sort_keys=False, allow_unicode=True).rstrip()]


def fetch_data(config: FetchConfig, observer: RunObserver) -> Json:
    """Download data sets of the catalog to the folder in which they are looked up.

    Return their files and which were downloaded.
    """
    result = {}
    for number, name in enumerate(config.names):
        observer.stage(f"fetch {name}")

        def received(n_bytes: int, stated: int | None, number: int = number) -> None:
            total = "" if stated is None else f" of {stated / 2**20:,.1f}"
            observer.tasks(number, len(config.names), best=f"{n_bytes / 2**20:,.1f}{total} MiB")

        paths, fetched = fetch(name, config.mirror or "", received)
        result[name] = {"files": paths, "fetched": fetched}
        observer.tasks(number + 1, len(config.names))
    return result


def fetch_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist data fetch` prints."""
    return [
        f"{name}: {', '.join(entry['files']) or 'comes with scikit-learn'}{'' if entry['fetched'] else ', is here already'}"
        for name, entry in result.items()
    ]


def verify_source(name: str, source: Source, parallel_map: ParallelMap) -> list[str]:
    """Read a data set, compare it with its description, and return the faults.

    For shards, every hash and every count is compared with the manifest. For other data, the checksum, the rows, the
    features and the classes are compared with the entry of the catalog, if it states them.
    """
    try:
        manifest = manifest_of(source)
        if manifest is None:
            read(source, name=name)
            return []
        read_schema(manifest)
    except InputError as e:
        return [str(e)]
    return list(filter(None, parallel_map(functools.partial(verify_shard, manifest.url), range(len(manifest.shards)))))


def verify(config: VerifyConfig, observer: RunObserver) -> dict[str, list[str]]:
    """Return the faults of each data set, see `verify_source`. Each data set is a stage for the observer."""
    names = config.names or [name for name, source in sorted(catalog().items()) if is_present(source)]
    sources = [source_from_name(name) for name in names]
    faults = {}
    with open_cluster(config.cluster, "verify", observer) as workers:
        for place, (name, source) in zip(names, sources, strict=True):
            observer.stage(place)
            faults[place] = verify_source(name, source, workers.parallel_map(observer))
    return faults


def verified_lines(result: dict[str, list[str]]) -> list[str]:
    """Return the lines that `aucdist data verify` prints."""
    return [f"{name}: {'intact' if not faults else f'{len(faults)} faults'}" for name, faults in result.items()]


def check_no_faults(result: dict[str, list[str]]) -> None:
    """Raise an InputError if a data set differs from its description."""
    if faults := [fault for set_faults in result.values() for fault in set_faults]:
        raise InputError("\n".join(faults))


class ShardConfig(DataRef):
    """A data set to be written as shards."""

    target: Annotated[PathOrUrl, Cli(position=3)]
    """The folder or URL of the shards. A data set that exists there is replaced."""
    rows_per_shard: CountOption = None
    """The largest number of rows in a shard. By default it is the number that takes 64 MiB in memory."""
    dtype: Literal["float32", "float64"] | None = None
    """The type of the values, float32 or float64. By default it is float64, or float32 if all numbers of a table are
    float32."""
    seed: Natural = 0
    """The seed of the order of the rows."""
    cluster: ClusterOption
    """Where the rows are read and written: a file in configs/cluster, or a path. By default it is this process."""
    s3: S3Option
    """How s3:// URLs are reached."""


def shard(config: ShardConfig, observer: RunObserver) -> Json:
    """Write a data set as shards.

    Raises
    ------
    InputError
        If the configuration or the data is wrong. In this case, a data set at the target is not changed.
    """
    with started(config, "shard-data", observer) as (stages, workers):
        parallel_map = workers.parallel_map(observer)
        request = sharding.request(
            source_of(config), config.target, rows_per_shard=config.rows_per_shard, dtype=config.dtype, seed=config.seed
        )
        manifest = stages("look for finished shards", sharding.finished, request, parallel_map)
        if manifest is None:
            job = stages(
                "look at the files",
                sharding.survey,
                request,
                each=parallel_map,
                place_on_workers=workers.place,
                name=config.name or "",
            )
            starts = stages("assign rows to shards", sharding.route_all, job, parallel_map)
            shards = stages("write shards", sharding.gather_all, job, starts, parallel_map)
            manifest = stages("write the manifest", sharding.finish, job, shards)
    return shard_result(manifest, stages.elapsed())


def shard_result(manifest: Manifest, seconds: float) -> Json:
    """Return the size and type of a sharded data set, as JSON values."""
    return {
        "target": manifest.folder,
        "manifest": manifest.url.rpartition("/")[2],
        "n_samples": manifest.n_samples,
        "n_features": manifest.block_schema.n_features,
        **(
            {"classes": list(manifest.schema.classes), "topics": manifest.schema.topics}
            if manifest.schema.classes
            else {"n_pos": manifest.n_pos, "n_neg": manifest.n_neg}
        ),
        **manifest.sizes(),
        "seconds": seconds,
    }


def shard_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist shard` and `aucdist simulate` print."""
    contents = (
        f"{len(result['classes'])} {'topics' if result['topics'] else 'classes'}"
        if "classes" in result
        else f"{result['n_pos']:,} positive"
    )
    return [
        f"{result['target']}: {counted(result['n_samples'], 'row')} ({contents}) x {result['n_features']}, "
        f"{result['layout']} {result['dtype']}, {counted(result['shards'], 'shard')}, {result['bytes'] / 1e6:.1f} MB"
    ]


class SimulateConfig(Strict):
    """Simulated rows of two Gaussians."""

    target: NameArgument
    """The folder or URL of the shards. A data set that exists there is replaced."""
    rows: AtLeastOne = 1_000_000
    """The number of rows."""
    features: AtLeastOne = 50
    """The number of features."""
    positive_share: Share = 0.02
    """The probability that a row is positive."""
    rows_per_shard: CountOption = None
    """The number of rows in a shard; the last shard may have fewer. By default it is the number that takes 64 MiB."""
    dtype: Literal["float32", "float64"] = "float32"
    """The type of the values, float32 or float64."""
    seed: int = 0
    """The seed of the rows, and of the direction between the classes."""
    shift: float = 1.2
    """The distance between the class means, in standard deviations."""
    cluster: ClusterOption
    """Where the rows are made: a file in configs/cluster, or a path. By default it is this process."""


def simulate(config: SimulateConfig, observer: RunObserver) -> Json:
    """Write simulated rows as shards, and return the same result as `shard`.

    Raises
    ------
    InputError
        If a local disk has no space for the rows. This is checked before anything is written.
    """
    simulation = Simulation(**config.model_dump(exclude={"target", "cluster"}))
    stages, url = Stages(observer), absolute(config.target)
    if (folder := local_path(url)) is not None:
        check_disk(
            config.rows * simulation.row_bytes, folder, f"cannot write {config.rows:,} rows", "folder or fewer --rows"
        )
    with open_cluster(config.cluster, "simulate", observer) as workers:
        parallel_map = workers.parallel_map(observer)
        write = functools.partial(simulation.write, url)
        shards = stages("write shards", lambda: list(parallel_map(write, range(simulation.n_shards))))
    return shard_result(stages("write the manifest", simulation.commit, url, shards), stages.elapsed())
