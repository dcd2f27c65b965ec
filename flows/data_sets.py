"""List the catalog, describe data sets, and verify their files."""

import functools
from typing import Annotated

import yaml

from aucdist.data.shards.manifest import manifest_of, read_schema, verify_shard
from aucdist.data.shards.reading import ParallelMap, read
from aucdist.data.sources import Source, catalog, fetch, is_present
from aucdist.errors import InputError, Json
from flows.compute.clusters import open_cluster
from flows.config.cluster import ClusterOption
from flows.config.data import source_from_name
from flows.config.loading import Cli, NameArgument, Names, Strict, TextList, UrlOption
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

    names: Annotated[Names, Cli(place=1)]
    """The names of data sets of the catalog."""
    mirror: UrlOption = None
    """A folder or URL with a copy of the files, under the same names as below AUCDIST_DATA. By default they are
    downloaded from where they were published."""


class VerifyConfig(Strict):
    """Data sets that are read and checked."""

    names: Annotated[TextList, Cli(place=1)]
    """Data sets of the catalog, or folders or URLs of shards. By default all that are on this machine are checked."""
    cluster: ClusterOption
    """Where the rows are read: a file in configs/cluster, or a path. By default it is this process."""


def list_data(config: ListConfig) -> Json:
    """Return the data sets of the catalog by name. A data set is present if it can be read without a network."""
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
            "features": manifest.form.n_features,
            "feature_names": names + [f"and {more} more"] * (more > 0),
            **(
                {"classes": list(schema.classes), "topics": schema.topics}
                if schema.classes
                else {"positives": manifest.n_pos, "positive": list(schema.positive), "negative": list(schema.negative)}
            ),
            "weights": manifest.form.weighted,
            **manifest.sizes(),
            "origin": manifest.origin,
        }
    return {name: entry | {"present": is_present(source)}}


def show_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist data show` prints."""
    return [yaml.safe_dump(result, sort_keys=False, allow_unicode=True).rstrip()]


def fetch_data(config: FetchConfig, observer: RunObserver) -> Json:
    """Download data sets of the catalog to where they are looked up, and return their files and whether they were downloaded."""
    result = {}
    for number, name in enumerate(config.names):
        observer.stage(f"fetch {name}")

        def received(n_bytes: int, stated: int | None, number: int = number) -> None:
            total = "" if stated is None else f" of {stated / 2**20:,.1f}"
            observer.tasks(number, len(config.names), best=f"{n_bytes / 2**20:,.1f}{total} MiB")

        places, fetched = fetch(name, config.mirror or "", received)
        result[name] = {"files": places, "fetched": fetched}
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
    features and the classes are compared with the entry of the catalog, as far as it states them.
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
    """Return the faults of each data set; see `verify_source`. The observer is called with each data set as a stage."""
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
