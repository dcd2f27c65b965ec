"""The data catalog: ``configs/data/*.yaml``, each file a mapping from names of data sets to their sources."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from aucdist.data.sources.source import Source, parse_source
from aucdist.data.storage.files import data_root as data_root
from aucdist.data.storage.guard import read_configuration
from aucdist.data.storage.urls import is_relative
from aucdist.errors import InputError, unknown

# libyaml's loader is ten times as fast, but not on every machine.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def catalog_folder() -> Path:
    """Return the folder of the catalog: beside the package in a checkout, inside it once installed."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "configs" / "data"
    return inside if inside.is_dir() else package.parent / "configs" / "data"


@functools.cache
def catalog(folder: Path | None = None) -> dict[str, Source]:
    """Return all data sets that have a name.

    Parameters
    ----------
    folder : Path, optional
        The folder of YAML files; by default the project's own.

    Raises
    ------
    InputError
        If the folder holds no catalog, if an entry is wrong, or if two entries share a name.
    """
    folder = catalog_folder() if folder is None else folder
    found: dict[str, Source] = {}
    for path in sorted(folder.glob("*.yaml")):
        for name, entry in _entries(path).items():
            if name in found:
                raise InputError(f"{path}: {name!r} is in the catalog twice")
            found[name] = parse_source(entry, f"{path}, {name}")
    if not found:
        raise InputError(f"no data catalog in {folder}")
    return found


def _entries(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(read_configuration(path), LOADER)
    except yaml.YAMLError as e:
        raise InputError(f"{path} is not valid YAML: {e}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: names of data sets with their sources are expected")
    return {str(name): entry for name, entry in content.items()}


def find(name: str) -> Source:
    """Return the source of a data set of the catalog.

    Raises
    ------
    InputError
        If there is none of that name; the message names the nearest.
    """
    sources = catalog()
    if name not in sources:
        raise unknown("data set", name, sources)
    return sources[name]


def is_present(source: Source) -> bool:
    """Tell whether a data set can be read here without a network: it is bundled, or its files are local and exist."""
    return source.format_of().is_present(source)


def refuse_absent(names: Iterable[str]) -> None:
    """Do nothing if the files of these data sets of the catalog are here, or lie in a store or on the web.

    Raises
    ------
    InputError
        If a relative path of one is nowhere: the message lists them, where each belongs, and where its files come from.
    """
    lines = []
    for name in dict.fromkeys(names):
        source = find(name)
        absent = [url for url in source.urls() if is_relative(url) and not is_present(source)]
        if absent:
            origin = f"; from {source.origin}" if source.origin else ""
            lines.append(f"  {name}: {', '.join(absent)}{origin}")
    if lines:
        raise InputError(
            f"data sets of the catalog that are not here, with their files below AUCDIST_DATA (now {data_root()}):\n"
            + "\n".join(lines)
            + "\nSave them there, or set AUCDIST_DATA to the folder that has them; `aucdist data list` shows what is here"
        )
