"""Find the data set that a command line names: in the catalog, by a YAML file, or as a file or folder itself."""

from collections.abc import Sequence
from pathlib import Path

from aucdist.data.formats.registry import format_from_bytes, format_from_suffix
from aucdist.data.sources import Source, catalog, parse_source
from aucdist.data.storage import files
from aucdist.data.storage.files import absolute
from aucdist.data.storage.guard import packing_of, unpacked
from aucdist.data.storage.urls import name_of
from aucdist.errors import InputError, Json, unknown
from flows.config.loading import apply_setting, find_sources, read_mapping

PATTERN = "*?["
HEAD = 2**16
"""The number of bytes by which the format of a file without a known suffix is detected."""


def source_from_name(
    data: str,
    settings: Sequence[str] = (),
    *,
    labelled: bool = True,
    label: str | None = None,
    positive: str | None = None,
    trained: str | None = None,
) -> tuple[str, Source]:
    """Return the name of a data set, and its source.

    `data`: a name of the catalog; a YAML file with the keys of a source; or a path or URL, whose suffix or first bytes
        give the format. Relative paths start at the working folder; those in a YAML file are looked up in its folder first.
    `settings`: changes to the source, each ``key=value`` with a value in YAML.
    `labelled`: False for rows that are only scored: their source need not name a label column.
    `label`: the label column: a name, or a position if there is no header.
    `positive`: the positive class, as the file spells it.
    `trained`: a model, whose training rows tell the format of a file that has no suffix.
    Raises InputError if there is no such data set, or if its source is wrong.
    """
    entry = _entry(data)
    for setting in settings:
        apply_setting(entry, setting)
    if label is not None:
        entry["label"] = label if entry.get("header", True) or not label.lstrip("-").isdigit() else int(label)
    if positive is not None:
        entry["positive"] = positive
    yaml = is_yaml(data)
    if yaml:
        entry = find_sources(entry, Path(data).parent)
    if "format" not in entry and trained is not None:
        from aucdist.model import load_model

        if form := load_model(absolute(trained)).reading.get("format"):
            entry["format"] = form
    if "format" not in entry and not yaml and not files.is_web(data):
        entry |= _format_from_content(files.expand(entry["source"])[0])
    if "format" not in entry:
        raise InputError(
            f"{files.shown(data)}: its suffix does not give its format; name one, as in --set format=svmlight"
        )
    name = data if _in_catalog(data) else name_of(data).partition(".")[0].strip(PATTERN) or "data"
    return name, parse_source(entry, data, labelled=labelled)


def is_yaml(data: str) -> bool:
    """Return whether a name is that of a YAML file."""
    return Path(data).suffix in (".yaml", ".yml")


def _in_catalog(data: str) -> bool:
    # look for files and folders first, because reading the catalog is slow
    return not (is_yaml(data) or "/" in data or _format_from_suffix(data)) and data in catalog()


def _entry(data: str) -> Json:
    if _in_catalog(data):
        return catalog()[data].model_dump(mode="json", exclude_defaults=True)
    if is_yaml(data):
        return read_mapping(Path(data))
    if not data:
        raise InputError("the name of the data is empty: name a file, folder or URL, or `.` for this folder")
    url = data if "://" in data else str(Path(data).absolute())
    on_the_web = files.is_web(url)
    if not on_the_web and not files.exists(url) and not set(PATTERN) & set(data):
        if "/" in data or _format_from_suffix(data):
            raise InputError(f"cannot read {files.shown(data)}: no such file or folder. Correct the path")
        raise unknown("data set", data, catalog())
    by_suffix = _format_from_suffix(url)
    if url.endswith(".dat") and not on_the_web:  # KEEL's, and that of many others
        return {"source": url, **_format_from_content(files.expand(url)[0])}
    if by_suffix and by_suffix["format"] != "jsonl":  # a manifest of shards is JSON
        return {"source": url, **by_suffix}
    from aucdist.data.shards.manifest import CURRENT, GENERATION, below  # loads NumPy, SciPy and compiled kernels

    if GENERATION.fullmatch(data.rpartition("/")[2]):
        return {"source": url, "format": "shards"}
    if not on_the_web:  # a folder: the suffixes of all files must agree
        # The Parquet files of a Delta table may hold rows that were deleted.
        for name, form in ((CURRENT, "shards"), ("_delta_log", "delta")):
            if files.exists(below(url, name)):
                return {"source": url, "format": form}
        first, *others = [_format_from_suffix(file_url) for file_url in files.expand(url)]
        by_suffix = first if all(other == first for other in others) else {}
    return {"source": url, **by_suffix}


def _format_from_suffix(url: str) -> Json:
    """Return format and separator of a file by its suffix; empty for an unknown one, which needs a setting."""
    path = Path(name_of(url))
    return format_from_suffix((path.with_suffix("") if packing_of(url) else path).name)


def _format_from_content(url: str) -> Json:
    """Return the format of a file by its first bytes."""
    head = files.read_range(url, 0, min(files.stat(url).size, HEAD))
    if packing_of(url, head):
        head = unpacked(files.read_bytes(url), url)[:HEAD]
    return format_from_bytes(head, files.shown(url))
