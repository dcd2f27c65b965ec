"""Which data set a user means on the command line: one of the catalog, a YAML file, or a file or folder itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from aucdist.data.formats.registry import keys_by_suffix
from aucdist.data.shards.manifest import CURRENT, GENERATION, below
from aucdist.data.sources.catalog import catalog
from aucdist.data.sources.source import Source, parse_source
from aucdist.data.storage import files
from aucdist.data.storage.compression import is_packed
from aucdist.errors import InputError, unknown
from flows.config.cluster import ClusterConfig, NoCluster
from flows.config.loading import apply_setting, explain, find_config, read_mapping

Config = TypeVar("Config", bound=BaseModel)


def named_source(data: str, settings: Sequence[str] = (), *, labelled: bool = True) -> tuple[str, Source]:
    """Return what to call a data set, and its source.

    Parameters
    ----------
    data : str
        A name of the catalog; a YAML file with the keys of a source; or a path or URL, whose format its name tells. Relative
        paths lie below the working folder.
    settings : sequence of str
        Changes to the source, each ``key=value`` with a value in YAML.
    labelled : bool, default=True
        False for rows that are only scored: they need not say which column holds their labels.

    Raises
    ------
    InputError
        If there is no such data set, or if something in it is wrong.
    """
    entry = _entry(data)
    for setting in settings:
        apply_setting(entry, setting)
    if "format" not in entry:
        raise InputError(
            f"{files.shown(data)}: its name does not tell its format; give one, as in --set format=svmlight"
        )
    name = Path(urlsplit(data).path.rstrip("/")).name.partition(".")[0] or "data"
    return data if data in catalog() else name, parse_source(entry, data, labelled=labelled)


def _entry(data: str) -> dict[str, Any]:
    if data in catalog():
        return catalog()[data].model_dump(mode="json", exclude_defaults=True)
    if Path(data).suffix in (".yaml", ".yml"):
        return read_mapping(Path(data))
    place = data if "://" in data else str(Path(data).absolute())
    if not files.is_web(place) and not files.exists(place):
        if "/" in data:
            raise InputError(f"cannot read {files.shown(data)}: no such file or folder")
        raise unknown("data set", data, catalog())
    if GENERATION.fullmatch(data.rpartition("/")[2]) or (
        not files.is_web(place) and files.exists(below(place, CURRENT))
    ):
        return {"source": place, "format": "shards"}
    return {"source": place, **_told_by_name(place)}


def _told_by_name(place: str) -> dict[str, Any]:
    """Return format and separator by the ending of a name; none where it tells nothing, and a setting must."""
    path = Path(urlsplit(place).path)
    return keys_by_suffix((path.with_suffix("") if is_packed(place) else path).name)


def configured(model: type[Config], where: str, cluster: str | None, keys: dict[str, Any]) -> Config:
    """Return a configuration made of options of the command line; those that are None take their defaults.

    Parameters
    ----------
    model : type
        What it must be.
    where : str
        Names the command in errors.
    cluster : str or None
        A file in ``configs/cluster``, or a path.
    keys : dict

    Raises
    ------
    InputError
        If an option is wrong.
    """
    raw = {key: value for key, value in keys.items() if value is not None}
    try:
        return model.model_validate(raw | {"cluster": cluster_named(cluster)})
    except ValidationError as e:
        raise InputError(explain(e, model, where)) from None


def cluster_named(name: str | None) -> ClusterConfig:
    """Return the cluster that a file in ``configs/cluster`` or a path describes; None: this process.

    Raises
    ------
    InputError
        If there is no such file, or if it is wrong.
    """
    if name is None:
        return NoCluster()
    path = find_config(name, "cluster")
    try:
        return TypeAdapter(ClusterConfig).validate_python(read_mapping(path))
    except ValidationError as e:
        raise InputError(explain(e, NoCluster, str(path))) from None
