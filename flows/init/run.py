"""Looks at a file, and describes it by a configuration."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from aucdist.data.formats.table_form import REMEDY, Spelling
from aucdist.data.formats.text import pick
from aucdist.data.labels import Labels, above_lowest, choose_positive, listed
from aucdist.data.sources import Source, parse_source
from aucdist.data.storage import files
from aucdist.data.storage.files import local_path
from aucdist.data.storage.urls import reveal, shown
from aucdist.errors import InputError
from flows.config.base import Cli
from flows.config.data import DataFileOptions
from flows.config.sources import source_from_name
from flows.init.cells import Cells, as_numpy
from flows.init.columns import HASHED_INTO, LAST, LEAST_LATE, Column, Kind, Table
from flows.init.read import FirstRows, first_rows, found_layout, survey
from flows.init.text import flow, yaml_text
from flows.progress.console import RunObserver

MOST_CLASSES = 20
FORMATS_OF_COLUMNS = ("csv", "parquet", "jsonl", "arrow", "excel", "sql", "delta", "iceberg")
FORMATS_WITHOUT_COLUMNS = ("svmlight", "keel")
BIRTH = re.compile("birth|born|dob", re.IGNORECASE)
"""A date that says nothing of when a row came."""


class InitConfig(DataFileOptions):
    """A data file, and how to describe it in a configuration."""

    data: Annotated[str, Cli(place=1)]
    """A CSV, Parquet, svmlight or KEEL file, a path or a URL"""
    output: Annotated[Path | None, Cli(metavar="FILE")] = None
    """The YAML file; by default the name of the data, in this folder"""
    settings: Annotated[list[str], Cli(flag="--set", metavar="KEY=VALUE")] = Field(default=[])
    """Change a key of the source, as in --set label=clicked. May be repeated"""
    force: Annotated[bool, Cli()] = False
    """Replace the YAML file if it is there"""


@dataclass(frozen=True)
class Description:
    """A configuration, and what is said of it.

    `guessed`: how the positive class was chosen; empty if it was given.
    `leaks`: for columns that give the label away what they do.
    """

    text: str
    rows: int
    all_rows: bool
    positive: str
    guessed: str
    columns: dict[str, str] = field(default_factory=dict)
    leaks: dict[str, str] = field(default_factory=dict)

    def warnings(self, where: str) -> list[str]:
        """Return a sentence for each column that gives the label away."""
        return [
            f"warning: column {column!r} gives the label away ({why}); if it is known only once the label is, list it under "
            f"`drop` in {where}"
            for column, why in self.leaks.items()
        ]

    def of_positive(self) -> str:
        """Return which class is positive and, if that was guessed, how to name another."""
        how = f" was guessed: it is {self.guessed}. Another one: --positive CLASS" if self.guessed else ", as given"
        return f"positive class {self.positive!r}{how}"


def init(config: InitConfig, observer: RunObserver) -> dict[str, Any]:
    """Write a configuration for training, and return what ``aucdist init --json`` prints.

    Raises InputError if the file cannot be read, or its label column has no classes.
    """
    name, source = source_from_name(config.data, config.settings, label=config.label, positive=config.positive)
    file = config.output or Path(f"{name}.yaml")
    if file.exists() and not config.force:
        raise InputError(f"{file} is there already: name another by --output, or replace it by --force")
    described = describe(name, source, file, time=config.time, groups=config.groups)
    files.write_bytes(str(file.absolute()), described.text.encode())
    return {
        "config": str(file), "rows": described.rows, "all_rows": described.all_rows, "positive": described.positive,
        "columns": described.columns, "leaks": list(described.leaks), "warnings": described.warnings(str(file)),
        "positive_class": described.of_positive(),
    }  # fmt: skip


def init_lines(result: dict[str, Any]) -> list[str]:
    """Return what `aucdist init` prints."""
    file = result["config"]
    return [
        *["\n".join(f"{column:24} {kind}" for column, kind in result["columns"].items())] * bool(result["columns"]),
        *result["warnings"],
        f"{file}: {result['rows']:,} rows",
        f"next: aucdist data preview {file} --html {Path(file).stem}.html",
        result["positive_class"],
    ]


def describe(
    name: str, source: Source, output: Path | None = None, *, time: str | None = None, groups: str | None = None
) -> Description:
    """Return a configuration for training.

    `source`: with the label column. Each key that it gives stands in the configuration as it is.
    `output`: the file to be written, below whose folder paths are relative.
    `time` and `groups`: the column by which the last rows, or whole groups, are the test rows.
    Raises InputError if the file cannot be read, its label column has no classes, or a column is not there.
    """
    if source.format in FORMATS_WITHOUT_COLUMNS:
        if time or groups:
            raise InputError(f"files of format {source.format!r} have no columns by which rows could be split")
        return _without_columns(name, source, output)
    if source.format not in FORMATS_OF_COLUMNS:
        raise InputError(
            f"`aucdist init` looks at files of {', '.join(FORMATS_OF_COLUMNS + FORMATS_WITHOUT_COLUMNS)}, and this is "
            f"{source.format}, which needs no description"
        )
    rows = first_rows(source)
    where, names = files.shown(str(source.source)), rows.columns.column_names
    labels = _labels(rows)
    positive, guessed, signs = _positive(source, labels, where, f"the label column {rows.label!r} has", names)
    for key, column in (("--time", time), ("--groups", groups)):
        if column is not None:
            pick(names, column, where, key)
    columns, spelling = _columns(rows, signs, {groups} if groups else set())
    keys = _source_keys(rows, columns, spelling, source, output)
    keys |= {"positive": positive} if source.labels != "grades" else {}
    keys = {key: keys[key] for key in Source.model_fields if key in keys}
    parse_source(keys | {"source": source.source}, name)
    comments = _comments(columns, keys) | {"positive": guessed}
    data = []
    if any(c.missing and c.kind in ("number", "dates") for c in columns):
        data.append("impute: median  # numbers that are missing; a missing text is a category of its own")
    # Hashed columns make sparse rows, which are not centred.
    data.append(f"scale: {'maxabs' if any(c.kind == 'hashed' for c in columns) else 'standard'}")
    data += _test_rows(columns, time, groups, int(signs.sum()))
    head = _head(source, len(signs), rows.whole, output, rows.n_files)
    if rows.source.format == "csv":
        if not rows.source.header and "header" not in source.model_fields_set:
            head.append("The first line holds values and no names: columns are called x1, x2, ...")
        head += found_layout(source, rows.source)
    directions = {c.name: c.direction for c in columns if c.direction is not None and c.kind == "number"}
    model = [
        "# In place of the line above: shapes that rise or fall, as each number alone seems to; keep what you can defend.",
        f"# model: {{features: bins, lam: 1e-2, monotone: {flow(directions)}}}",
    ] if directions else []  # fmt: skip
    return Description(
        yaml_text(_config_name(name), head, keys, comments, data, model), len(signs), rows.whole, _shown(positive),
        guessed, {c.name: c.kind for c in columns}, {c.name: c.leak for c in columns if c.leak},
    )  # fmt: skip


def _labels(rows: FirstRows) -> Labels:
    """Return the label of each row.

    Raises InputError if one is missing.
    """
    column = rows.columns[rows.label].combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts, codes = (
        [text.strip() for text in encoded.dictionary.to_pylist()],
        as_numpy(encoded.indices.fill_null(-1) if encoded.null_count else encoded.indices),
    )
    spelling = Spelling.of(rows.source)
    missing = np.array([*(spelling.is_missing(text, label=True) for text in texts), True])[codes]
    if missing.any():
        row = int(np.argmax(missing))
        said = f" ({texts[codes[row]]!r})" if codes[row] >= 0 else ""
        raise InputError(f"{rows.place(row, rows.label)}, column {rows.label!r}: the value is missing{said}; {REMEDY}")
    return Labels.of(codes, tuple(texts), topics=rows.source.labels == "topics")


def _positive(source: Source, labels: Labels, where: str, has: str, columns: list[str]) -> tuple[Any, str, np.ndarray]:
    """Return the positive class as it is written, how it was chosen (empty if it was given), and which rows are positive."""
    counts = labels.counts()
    if source.labels == "grades":
        lowest = above_lowest(counts, source.positive, where)[1]
        return "minority", "", ~np.isin(np.array(labels.names)[labels.codes], lowest)
    if "positive" not in source.model_fields_set and len(counts) > MOST_CLASSES:
        others = f", or another column by --label, one of {', '.join(columns[:MOST_CLASSES])}" if columns else ""
        raise InputError(
            f"{has} {len(counts)} different values ({listed(counts)}): more than {MOST_CLASSES}; if they are classes, name "
            f"the positive one by --positive{others}"
        )
    if source.of_each:
        return source.model_dump(mode="json")["positive"], "", np.zeros(len(labels.codes), dtype=bool)
    chosen, negative = choose_positive(counts, source.positive, where)
    signs = labels.signs(chosen, negative, where) > 0
    if source.positive != "minority":
        return list(chosen) if len(chosen) > 1 else chosen[0], "", signs
    each = ", ".join(
        f"{label} {n:,}" for label, n in sorted(counts.items(), key=lambda entry: -entry[1])[:MOST_CLASSES]
    )
    rarest = f"the rare{'r' if len(counts) == 2 else 'st'} class; rows of each: {each}"
    return chosen[0], rarest, signs


def _columns(rows: FirstRows, signs: np.ndarray, apart: set[str]) -> tuple[list[Column], Spelling]:
    """Return what becomes of each column, as the source says or else as its cells tell, and how numbers are written."""
    source, names = rows.source, rows.columns.column_names
    where = files.shown(str(source.source))

    def named(key: str, columns: Any) -> list[str]:
        return [pick(names, column, where, key) for column in columns or ()]

    kept, there = named("keep", source.keep) or [*names, *rows.unread], set(names)
    apart = {*apart, rows.label, *named("groups", [source.groups] * (source.groups is not None))}
    if source.cost_column is not None and not source.keep:
        apart.update(named("cost_column", [source.cost_column]))
    kinds: dict[str, Kind] = {}
    listed_as: dict[Kind, Any] = {"hashed": source.hashed, "dates": source.dates, "drop": source.drop}
    if source.categorical != "auto":
        listed_as["categorical"] = source.categorical
    for kind, given in listed_as.items():
        kinds |= dict.fromkeys(named(kind, given), kind)
    looked_at = [name for name in kept if name in there and name not in apart]
    cells = Cells.of(rows.columns.select(looked_at), signs)
    spelled = source.format != "csv" or {"decimal", "thousands", "symbols"} & source.model_fields_set
    table = Table.of(
        cells, Spelling.of(source) if spelled else None, tuple(source.missing_values), len(signs), int(signs.sum()),
        source.date_format,
    )  # fmt: skip
    columns = table.columns()
    for c in columns:
        if kinds.get(c.name, c.kind) != c.kind:
            c.kind, c.comment, c.words, c.parts = kinds[c.name], "as given", (), tuple(source.dates.get(c.name, ()))
    columns += [Column(name, "drop", f"its type is {unread}") for name, unread in rows.unread.items() if name in kept]
    return columns, table.spelling


def _source_keys(
    rows: FirstRows, columns: list[Column], spelling: Spelling, given: Source, output: Path | None
) -> dict[str, Any]:
    """Return the keys of the source: those that were given, and what was found."""
    keys = _given_keys(rows.source, given, output) | {"label": rows.label}
    of = {kind: [c for c in columns if c.kind == kind] for kind in ("drop", "dates", "categorical", "hashed")}

    def with_given(key: str, names: list[Any]) -> None:
        if names and keys.get(key) != "auto":
            keys[key] = list(dict.fromkeys([*keys.get(key, ()), *names]))

    with_given("drop", [c.name for c in of["drop"]])
    with_given("categorical", [c.name for c in of["categorical"]])
    with_given("missing_values", [word for c in columns if c.kind != "drop" for word in c.words])
    if of["dates"]:
        keys["dates"] = {c.name: list(c.parts) for c in of["dates"]} | keys.get("dates", {})
        form = next((c.date_format for c in of["dates"] if c.date_format is not None), None)
        keys = ({} if form is None else {"date_format": form}) | keys
    if of["hashed"]:
        keys["hashed"] = {c.name: HASHED_INTO for c in of["hashed"]} | keys.get("hashed", {})
    if any(c.missing for c in columns if c.kind != "drop") or "missing_values" in keys:
        keys.setdefault("missing", "keep")
    if spelling.decimal != ".":
        keys["decimal"] = spelling.decimal
    keys |= {"thousands": spelling.thousands} if spelling.thousands else {}
    keys |= {"symbols": list(spelling.symbols)} if spelling.symbols else {}
    return keys


def _comments(columns: list[Column], keys: dict[str, Any]) -> dict[str, Any]:
    """Return why each column is used as it is, by the key that names it; numbers stand behind all keys."""
    comments: dict[str, Any] = {
        key: {c.name: c.comment for c in columns if c.kind == key} for key in ("drop", "dates", "categorical", "hashed")
    }
    if keys.get("categorical") == "auto":
        del comments["categorical"]
    if "date_format" in keys:
        comments["date_format"] = "check that day and month are not swapped"
    if "symbols" in keys:
        comments["symbols"] = "beside numbers, which they do not change"
    gaps = [f"{c.name} {c.missing:,}" for c in columns if c.missing and c.kind != "drop"]
    if gaps:
        comments["missing"] = f"rows without: {', '.join(gaps)}"
    comments[""] = [f"number {c.name}: {c.comment}" for c in columns if c.kind == "number"]
    if "unknown" not in keys:
        comments[""].append("unknown: ignore  # for categories that only new rows have; by default they are an error")
    return comments


def _test_rows(columns: list[Column], time: str | None, groups: str | None, n_pos: int) -> list[str]:
    """Return the lines that say which rows are for the test: the last ones where rows have dates, else some of each class."""
    random = "test: {fraction: 0.2, seed: 0}"
    if time is not None or groups is not None:
        keys = {"time": time, "last": LAST} if time is not None else {"fraction": 0.2, "seed": 0}
        return [f"split: {flow(keys | ({'groups': groups} if groups else {}))}"]
    dates = [c for c in columns if c.kind == "dates" and "days" in c.parts and c.late[0] and not BIRTH.search(c.name)]
    if not dates:
        return [random]
    of = min(dates, key=lambda c: c.missing)
    rows, positives = of.late
    split = f"split: {flow({'time': of.name, 'last': LAST})}"
    if min(positives, rows - positives) < LEAST_LATE <= n_pos:
        return [
            random,
            f"# {split}  # a test like the future; but of the last {rows:,} rows {positives:,} are positive",
        ]
    why = "the last rows are the test; `gap: 30` leaves out the 30 days before, if labels are known late"
    return [f"{split}  # {why}"]


def _without_columns(name: str, source: Source, output: Path | None) -> Description:
    """Describe a file whose features are numbers, svmlight, or whose header names all, KEEL."""
    surveyed, whole = survey(source)
    # A survey has no rows, but so many of each class.
    names = tuple(surveyed.classes)
    labels = Labels(np.repeat(np.arange(len(names)), list(surveyed.classes.values())), names)
    positive, guessed, _ = _positive(source, labels, files.shown(str(source.source)), "the labels have", [])
    of = source.format_of()
    n_features = len(of.feature_names(source, surveyed))
    sparse = of.is_sparse(surveyed, n_features)
    keys = _given_keys(source, source, output) | ({"positive": positive} if source.labels != "grades" else {})
    comments: dict[str, Any] = {"positive": guessed}
    if surveyed.width:
        share = surveyed.stored / max(1, surveyed.rows * surveyed.width)
        said = f"{surveyed.width:,} features, {share:.2%} of their values are not 0: rows are {'sparse' if sparse else 'dense'}"
    else:
        said = f"{len(surveyed.columns):,} columns, {len(surveyed.categories):,} of texts: {n_features:,} features"
    comments[""] = [said]
    data = [f"scale: {'maxabs' if sparse else 'standard'}", "test: {fraction: 0.2, seed: 0}"]
    if surveyed.missing:
        keys.setdefault("missing", "keep")
        comments["missing"] = "rows without: " + ", ".join(f"{column} {n:,}" for column, n in surveyed.missing.items())
        data.insert(0, "impute: median  # numbers that are missing; a missing text is a category of its own")
    keys = {key: keys[key] for key in Source.model_fields if key in keys}
    parse_source(keys | {"source": source.source}, name)
    text = yaml_text(_config_name(name), _head(source, surveyed.rows, whole, output), keys, comments, data)
    return Description(text, surveyed.rows, whole, _shown(positive), guessed)


def _head(source: Source, n: int, whole: bool, output: Path | None, n_files: int = 1) -> list[str]:
    """Return the comments at the top of the YAML."""
    rows = f"{'the' if whole else 'the first'} {n:,} rows"
    if not whole and n_files > 1:
        rows = f"{n:,} rows, the first of each of {n_files} files,"
    of = f"from {rows} of {files.shown(str(source.source)).rpartition('/')[2]}"
    if output is None:
        return [f"Written by `aucdist train` {of}."]
    return [
        f"Written by `aucdist init` {of}. Change what is wrong. Then:",
        f"  aucdist data preview {output.name}    prints what becomes of each column",
        f"  aucdist train {output.name}           trains, and writes a report",
    ]


def _config_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).lstrip("._+-") or "data"


def _shown(positive: Any) -> str:
    return positive if isinstance(positive, str) else flow(positive)


def _given_keys(source: Source, given: Source, output: Path | None) -> dict[str, Any]:
    """Return the keys of a source that were given or found, in types of JSON; a file below the folder of the YAML by its name."""
    keys = source.model_dump(mode="json", exclude_defaults=True)
    keys |= given.model_dump(mode="json", include=given.model_fields_set)
    urls = []
    for url in source.urls():
        path, folder = local_path(url), None if output is None else output.absolute().parent
        below = path is not None and folder is not None and path.is_relative_to(folder)
        if path is None:
            urls.append(shown(url) if output is None else reveal(url))
        else:
            urls.append(str(path.relative_to(folder) if below and folder is not None else path))
    return keys | {"source": urls[0] if len(urls) == 1 else urls}
