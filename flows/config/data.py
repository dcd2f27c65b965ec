"""Configuration of data sets: which rows are read, how their features are encoded, and which rows are test rows.

The module also finds the data set that a command line names: in the catalog, by a YAML file, or as a file or folder.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import SerializerFunctionWrapHandler, WrapValidator, model_serializer, model_validator

from aucdist.data.dataset import Impute, Scale
from aucdist.data.formats.registry import format_from_bytes, format_from_suffix
from aucdist.data.formats.source_fields import EachOf
from aucdist.data.labels import EACH
from aucdist.data.own_files import UNLABELLED
from aucdist.data.sources import ClassName, Source, catalog, find_source, parse_source
from aucdist.data.storage import files
from aucdist.data.storage.files import absolute
from aucdist.data.storage.guard import packing_of, unpacked
from aucdist.data.storage.urls import name_of
from aucdist.errors import InputError, Json, unknown
from flows.config.loading import (
    RUN_NAME,
    Cli,
    ColumnOption,
    Gap,
    Natural,
    Share,
    ShareOrNone,
    Strict,
    apply_setting,
    find_sources,
    read_mapping,
)

CacheMode = Literal["auto", "memory", "stream"]
"""Whether blocks stay in the workers' memory, are streamed (read or mapped for every pass), or the memory of the workers
decides."""


class DataRef(Strict):
    """A data set: a name from the catalog, or the description of a source."""

    name: Annotated[str | None, Cli(hidden=True)] = None
    """The name of a data set of the catalog (see `aucdist data list`)."""
    source: Annotated[Source | None, Cli(position=2, data=True, labelled=True, required=True)] = None
    """The description of a data set that is not in the catalog."""

    @model_validator(mode="before")
    @classmethod
    def _may_be_a_source(cls, content: Any) -> Any:
        return {"source": content} if isinstance(content, Source) else content

    def _check(self) -> None:
        if (self.name is None) == (self.source is None):
            raise InputError(
                f"give exactly one of `name` (a data set of the catalog) and `source`; got {'both' if self.name else 'neither'}"
            )
        source_of(self)  # raises an error for a name that is not in the catalog


class UnlabelledRef(DataRef):
    """Rows for a model to score: a name from the catalog, or a description of your own data, which needs no label."""

    source: Annotated[
        Source | None,
        WrapValidator(
            lambda value, _: (
                value if isinstance(value, Source | None) else Source.model_validate(value, context=UNLABELLED)
            )
        ),
        Cli(position=2, data=True, required=True),
    ] = None
    """The description of a data set that is not in the catalog. It needs no label. The model knows how to encode its
    columns."""


class DataFileOptions(Strict):
    """Options for a data file that has no configuration yet."""

    label: ColumnOption = None
    """The column with the classes. Files of svmlight and KEEL name it themselves."""
    positive: Annotated[str | None, Cli(metavar="CLASS")] = None
    """The positive class, spelled as in the file. By default it is the rarest class."""
    time: ColumnOption = None
    """A column of dates or numbers. The last rows by this column become the test rows."""
    groups: ColumnOption = None
    """A column such as a user. Rows with equal values stay on one side of the split, and the column is not a feature.
    """


class TestConfig(Strict):
    """The test rows: a part of the data, chosen at random or by time, or another data set."""

    __test__ = False  # pytest must not collect this class because of its name

    fraction: ShareOrNone = None
    """The share of each class that becomes test rows. They are drawn at random."""
    seed: Natural = 0
    """The seed of the split. It is used with `fraction`."""
    time: str | None = None
    """A column of numbers, or one of `dates` whose list has `days`. The last rows by this column are the test rows.
    Rows without a time are training rows."""
    last: Share = 0.2
    """With `time`: the share of the rows that are test rows. Rows of the same time stay together. So the share may be
    far from this one if there are few different times, such as years."""
    gap: Gap = 0.0
    """With `time`, in its unit (days for dates): the gap between training and test rows. Rows that come less than this
    before the first test row are left out, because their labels would not be known yet."""
    keep: bool = False
    """With `time`: whether its column remains a feature. By default the number, or `days` and `year` of dates, is not a
    feature, because new rows have values that no training row has."""
    groups: str | None = None
    """A column: rows with the same value are on the same side of the split. With `time`, they are on the side of the
    last of them. Folds of a search keep them together as well. The column is not used as a feature."""
    name: str | None = None
    """A data set of the catalog, which is encoded like the training data."""
    source: Source | None = None
    """The description of a data set, which is encoded like the training data."""

    @model_validator(mode="before")
    @classmethod
    def _groups_at_random(cls, content: Any) -> Any:
        if (
            isinstance(content, dict)
            and content.get("groups")
            and not {"fraction", "time", "name", "source"} & set(content)
        ):
            return content | {"fraction": 0.2}
        return content

    def _check(self) -> None:
        keys = [key for key in ("fraction", "time", "name", "source") if getattr(self, key) is not None]
        if len(keys) != 1:
            raise InputError(
                f"give exactly one of `fraction`, `time`, `name` and `source`; got {', '.join(keys) or 'none of them'}"
            )
        if "seed" in self.model_fields_set and keys != ["fraction"]:
            raise InputError(
                "`seed` works with `fraction` only: the last rows, or a separate test set, are not drawn at random. Leave it out"
            )
        for key in sorted({"last", "gap", "keep"} & self.model_fields_set if self.time is None else ()):
            raise InputError(
                f"`{key}` belongs to `time`, the column that says which rows come last: leave `{key}` out, or give `time`"
            )
        if self.groups is not None and self.is_separate_data_set:
            raise InputError(
                "`groups` says how rows are split, but a separate test set is not split: leave `groups` out"
            )
        if self.is_separate_data_set:
            source_of(self)  # raises an error for a name that is not in the catalog

    @property
    def is_separate_data_set(self) -> bool:
        """Whether the test rows are a data set of their own."""
        return self.name is not None or self.source is not None

    @model_serializer(mode="wrap")
    def _without_unused_keys(self, dump: SerializerFunctionWrapHandler) -> Json:
        unused = {"seed"} if self.fraction is None else set()
        unused |= {"last", "gap", "keep"} if self.time is None else set()
        # Otherwise the configuration could not be read again.
        return {key: value for key, value in dump(self).items() if key not in unused}


class DataConfig(DataRef):
    """The training data, how its features are encoded, and which rows are for the test."""

    positive: ClassName | list[ClassName] | EachOf | None = None
    """The positive class, in place of the one in the catalog: `minority`, a class or a list of classes. `each` fits
    each class against the rest, and {each: [...]} some of the topics."""
    direct: bool = False
    """Whether the workers read the files themselves, part by part, so that no row goes through this process. Use it for
    files that are larger than the memory of this process. Rows keep the order of the files. Shards are always read in
    this way."""
    test: TestConfig | None = None
    """The test rows. Without them there is no test AUC. `split` is the earlier name of this key, and is still read."""
    threshold_rows: ShareOrNone = None
    """The share of the training rows that sets the threshold of `operating_point` and is left out of the fit. These
    threshold rows are drawn at random, or are the last rows if `test.time` is given."""
    impute: Impute = "refuse"
    """What replaces missing numbers (of a source with `missing: keep`). It is learnt from the training rows. The median
    is approximate, with a relative error of at most 0.1 %. `keep` leaves them missing, which needs `features: bins`,
    `leaves` or `auto`."""
    log1p: Literal["numeric"] | list[str] | None = None
    """The features that are transformed by log(1 + x): a list of names, or `numeric` for all
    features that are not the 0/1 features of a category."""
    scale: Scale = "none"
    """How the features are scaled. The scaling is learnt from the training rows."""

    @model_validator(mode="before")
    @classmethod
    def _with_names_of_today(cls, content: Any) -> Any:
        if isinstance(content, dict) and "split" in content:  # the name of `test` in 0.4.0
            if content.get("test") is not None:
                raise InputError("`test` and its earlier name `split` are both given: remove one of them")
            content = dict(content)
            content.setdefault("test", content.pop("split"))  # `--set data.test=null` removes the default
        return content

    @property
    def of_each(self) -> bool:
        """Whether each class is fitted against the rest."""
        positive = source_of(self).positive if self.positive is None else self.positive
        return positive == EACH or isinstance(positive, EachOf)

    @property
    def test_source(self) -> Source | None:
        """The source of the test rows if they are a separate data set, otherwise None."""
        return source_of(self.test) if self.test is not None and self.test.is_separate_data_set else None


def not_in_order(time: str) -> InputError:
    """Return the error for a column of times that rows cannot be sorted by."""
    return InputError(
        f"the rows cannot be split by the time {time!r}, which has neither numbers nor dates to order them by: name another "
        "column"
    )


def check_keys_for_classes(config: Any) -> None:
    """Raise an InputError if the configuration of a run for several classes has a key that only two classes can have."""
    if config.shapes.requested:
        raise InputError(
            "shapes is for two classes: leave `shapes` out, or set `positive` to one class in place of `each`"
        )


def source_of(config: DataRef | TestConfig) -> Source:
    """Return the source of a data set: the entry of the catalog, or the `source` of the configuration."""
    if config.name is not None:
        return find_source(config.name)
    assert config.source is not None  # the models check that either the name or the source is given
    return config.source


def batch_name(data: UnlabelledRef) -> str:
    """Return a name for rows. It is that of the data set or of its first file."""
    if data.name is not None:
        return data.name
    name = source_of(data).urls()[0].rstrip("/").rpartition("/")[2].partition(".")[0]
    return name if re.fullmatch(RUN_NAME, name) else "batch"


def configured_source(config: DataConfig) -> Source:
    """Return the source of the training data, with the positive class and the groups that the configuration names.

    Raises
    ------
    InputError
        If the source and the configuration both name groups.
    """
    source = source_of(config)
    changes: Json = {} if config.positive is None else {"positive": config.positive}
    groups = config.test and config.test.groups
    if groups is not None:
        if source.is_sharded or source.groups is not None or source.qid == "use":
            raise InputError(
                "`test.groups` is not for shards or for a source with `groups`, which keep their own groups whole: remove it"
            )
        changes["groups"] = groups
    return source.model_copy(update=changes)


WILDCARDS = "*?["
HEAD = 2**16
"""The number of bytes from which the format of a file without a known suffix is detected."""


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

    Parameters
    ----------
    data : str
        A name of the catalog, a YAML file with the keys of a source, or the path or URL of data. The suffix or the first bytes
        of data give the format. Relative paths start at the working folder. Those in a YAML file are looked up in the folder of
        this file first.
    settings : sequence of str, default=()
        Changes to the source, each ``key=value`` with a value in YAML.
    labelled : bool, default=True
        Whether the source needs a label column. Rows that are only scored need none.
    label : str, optional
        The label column: a name, or a position if there is no header.
    positive : str, optional
        The positive class, as the file spells it.
    trained : str, optional
        A model. A file without a suffix is read in the format of its training rows.

    Raises
    ------
    InputError
        If there is no such data set, or if its source is wrong.
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
        from aucdist.model.files import load_model

        if form := load_model(absolute(trained)).reading.get("format"):
            entry["format"] = form
    if "format" not in entry and not yaml and not files.is_web(data):
        entry |= _format_from_content(files.files_of(entry["source"])[0])
    if "format" not in entry:
        raise InputError(
            f"{files.shown(data)}: its name does not show its format: name one, as in --set format=svmlight"
        )
    name = data if _in_catalog(data) else name_of(data).partition(".")[0].strip(WILDCARDS) or "data"
    return name, parse_source(entry, data, labelled=labelled)


def is_yaml(data: str) -> bool:
    """Return whether a name is that of a YAML file."""
    return Path(data).suffix in (".yaml", ".yml")


def _in_catalog(data: str) -> bool:
    # Files and folders are tried first, because reading the catalog is slow.
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
    if not (on_the_web or files.exists(url) or set(WILDCARDS) & set(data)):
        if "/" in data or _format_from_suffix(data):
            raise InputError(f"cannot read {files.shown(data)}: no such file or folder. Correct the path")
        raise unknown("file or data set", data, catalog())
    by_suffix = _format_from_suffix(url)
    if url.endswith(".dat") and not on_the_web:  # the suffix of KEEL files and of many others
        return {"source": url, **_format_from_content(files.files_of(url)[0])}
    if by_suffix and by_suffix["format"] != "jsonl":  # a manifest of shards is JSON
        return {"source": url, **by_suffix}
    # This import loads NumPy, SciPy and compiled kernels.
    from aucdist.data.shards.manifest import CURRENT, MANIFEST_NAME, SHARD_NAME

    if MANIFEST_NAME.fullmatch(data.rpartition("/")[2]):
        return {"source": url, "format": "shards"}
    if not on_the_web:  # it may be a folder, and then the suffixes of all files must agree
        # The Parquet files of Delta and Iceberg tables may hold rows that were deleted.
        for name, form in ((CURRENT, "shards"), ("_delta_log", "delta"), ("metadata/version-hint.text", "iceberg")):
            if files.exists(f"{url.rstrip('/')}/{name}"):
                return {"source": url, "format": form}
        listed = files.files_of(url)
        if any(map(SHARD_NAME.fullmatch, listed)):
            raise InputError(
                f"{files.shown(url)} has shards, but no {CURRENT}: the sharding did not end. Repeat it, or name another folder"
            )
        first, *others = map(_format_from_suffix, listed)
        by_suffix = first if all(other == first for other in others) else {}
    return {"source": url, **by_suffix}


def _format_from_suffix(url: str) -> Json:
    """Return the format and the separator of a file by its suffix. The result is empty if the suffix is unknown."""
    path = Path(name_of(url))
    return format_from_suffix((path.with_suffix("") if packing_of(url) else path).name)


def _format_from_content(url: str) -> Json:
    """Return the format of a file by its first bytes."""
    head = files.read_range(url, 0, min(files.stat(url).size, HEAD))
    if packing_of(url, head):
        head = unpacked(files.read_bytes(url), url)[:HEAD]
    return format_from_bytes(head, files.shown(url))
