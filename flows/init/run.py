"""Look at a file, and describe it by a configuration with comments."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import yaml
from pydantic import field_validator

from aucdist.data.formats.table_options import Spelling, TableOptions
from aucdist.data.formats.tables import parse_table, plain_values
from aucdist.data.formats.text import from_last, resolve_column
from aucdist.data.labels import Labels, above_lowest, choose_positive, listed
from aucdist.data.sources import Source, parse_source
from aucdist.data.storage import files
from aucdist.data.storage.files import local_path
from aucdist.data.storage.urls import reveal, shown
from aucdist.errors import InputError, Json, counted, printable, shortened
from flows.config.data import DataFileOptions, not_in_order, source_from_name
from flows.config.loading import Cli, NameArgument, SettingsOption
from flows.init.columns import (
    CODES,
    FREE_TEXT,
    HASHED_INTO,
    MIN_LATE,
    N_SHOWN,
    TEST_SHARE,
    ColumnGuess,
    Kind,
    contents_of,
)
from flows.init.read import FirstRows, first_rows, survey_first_rows

MAX_CLASSES = 20
SOURCE_PREFIX = "data.source."
"""The prefix of a key of the source in an option of `aucdist train`."""
IMPUTE_LINE = "impute: median  # for numbers that are missing; missing texts are a category of their own"
WORDS_FIRST = (
    ". Make columns of the words of free text first, for example with scikit-learn's TfidfVectorizer: `hashed` would treat each "
    "different text as one category"
)
BIRTH_DATE = re.compile("birth|born|dob", re.IGNORECASE)
"""Names of date columns that do not say when a row was recorded."""


class InitConfig(DataFileOptions):
    """A data file, and how to describe it in a configuration."""

    data: NameArgument
    """A file, folder or URL of a table, in any format that aucdist reads."""
    output: Annotated[Path | None, Cli(metavar="FILE")] = None
    """The YAML file to write. By default it has the name of the data and is written to the current folder."""
    settings: SettingsOption
    """Change a key of the source, as in --set label=clicked. May be repeated."""
    force: bool = False
    """Replace the YAML file if it exists."""

    @field_validator("output", mode="before")
    @classmethod
    def _is_local(cls, output: Any) -> Any:
        if "://" in str(output):
            raise InputError(
                "the configuration must be a local file, because other commands read it: name a path, not a URL"
            )
        return output


@dataclass(frozen=True)
class Description:
    """A configuration, and remarks about it.

    Attributes
    ----------
    text : str
        The YAML text.
    rows : int
        The number of rows that were read.
    all_rows : bool
        Whether these are all rows.
    positive : str
        The positive class.
    guess : str
        How the positive class was chosen. It is empty if the class was given.
    columns : mapping of str to str
        The use of each column.
    leaks : dict of str to str
        For each column that reveals the label, how it does so.
    notes : sequence of str
        Other warnings, for example about an identifier that is used as a feature, and questions about columns.
    decisions : sequence of tuple (str, str)
        Key and text of other decisions that a user should check, for example columns that are left out.
    """

    text: str
    rows: int
    all_rows: bool
    positive: str
    guess: str
    columns: Mapping[str, str]
    leaks: dict[str, str]
    notes: Sequence[str]
    decisions: Sequence[tuple[str, str]] = ()

    def warnings(self, leave_out: str) -> list[str]:
        """Return a sentence for each reason to doubt a column or the test. Questions are left out.

        Parameters
        ----------
        leave_out : str
            A text that says how a column can be left out, with ``{}`` for the name of the column.
        """
        leaks = (
            f"column {column!r} gives the label away ({why}); if it becomes known only after the label, "
            f"{leave_out.replace('{}', column)}"
            for column, why in self.leaks.items()
        )
        return [f"warning: {text}" for text in (*self.notes, *leaks) if not text.endswith("?")]

    def of_positive(self) -> str:
        """Return a text that says which class is positive and, if it was not given, how to name another."""
        if not self.guess:
            return f"positive class {self.positive!r}, as given"
        return (
            f"{self.positive!r} is the positive class, because it is {self.guess}. Use --positive CLASS to name another"
        )


def init(config: InitConfig) -> Json:
    """Write a configuration for training, and return what ``aucdist init --json`` prints.

    Raises
    ------
    InputError
        If the file cannot be read, or its label column has no classes.
    """
    name, source = source_from_name(
        config.data, config.settings, labelled=False, label=config.label, positive=config.positive
    )
    file = config.output or Path(f"{name}.yaml")
    described = propose(name, source, file, time=config.time, groups=config.groups)
    files.write_bytes(str(file.absolute()), described.text.encode(), new=not config.force)
    return {
        "config": str(file), "rows": described.rows, "all_rows": described.all_rows, "positive": described.positive,
        "columns": described.columns, "leaks": list(described.leaks), "positive_class": described.of_positive(),
        "warnings": described.warnings(f"list it under `drop` in {file}"),
    }  # fmt: skip


def init_lines(result: Json) -> list[str]:
    """Return the lines that `aucdist init` prints."""
    file = result["config"]
    return [
        *(f"{column:24} {kind}" for column, kind in result["columns"].items()),
        *result["warnings"],
        f"{file}: {counted(result['rows'], 'row')}",
        f"next: aucdist data preview {file} --html {Path(file).stem}.html",
        result["positive_class"],
    ]


def propose(
    name: str, source: Source, output: Path | None = None, *, time: str | None = None, groups: str | None = None
) -> Description:
    """Return a configuration for training.

    Parameters
    ----------
    name : str
        The name of the data.
    source : Source
        The source, with the label column. The keys that it gives are copied to the configuration.
    output : Path, optional
        The file to be written. Paths in its folder are relative to it.
    time, groups : str, optional
        The column of times, if the last rows become the test rows, and the column of groups that are not divided.

    Raises
    ------
    InputError
        If the file cannot be read, if its label column has no classes, or if a column does not exist.
    """
    if source.format in ("svmlight", "keel", "arff"):
        if time or groups:
            raise InputError(
                f"--time and --groups need named columns, which files of format {source.format!r} do not have: leave both out"
            )
        return _without_columns(name, source, output)
    if not source.format_of().needs_label:
        raise InputError(
            f"files of the format {source.format} describe themselves, so `aucdist init` has nothing to add: write `data: {{"
            f"source: {{source: PATH, format: {source.format}}}}}` in a configuration"
        )
    rows = first_rows(source)
    where, names = source.display_name, rows.columns.column_names
    resolve_column(names, rows.source.label, where, "label")
    options = TableOptions.of(rows.source, None, names, where)
    labels = parse_table(
        rows.columns.select([options.label]),
        TableOptions(options.label, ()),
        where,
        rows.location,
        are_cells=source.format == "csv",
    ).labels
    whole = rows.share == 1.0
    positive, guessed, is_positive = _positive(
        source, labels, f"the label column {options.label!r} has", options.features, whole=whole
    )
    for key, column in (("--time", time), ("--groups", groups)):
        if column is not None:
            resolve_column([name for name in names if name != options.label], column, where, key)
    columns, spelling = _guesses(rows, options, is_positive, {options.groups, groups or ""})
    kept = _keep_needed(columns, time, where, f"{'' if output else SOURCE_PREFIX}hashed=")
    kinds = {c.name: c.kind for c in columns}
    keys = _source_keys(rows.source, options.label, columns, spelling, output)
    keys = _checked_keys(name, source, keys, positive)
    comments = _comments(columns, keys) | {"positive": guessed}
    sparse = _is_sparse(source, "hashed" in kinds.values())
    notes = [f"column {c.name!r} {c.question}" for c in columns if c.question]
    notes += [f"column {c.name!r} is {c.comment}" for c in kept]
    data = [
        *[IMPUTE_LINE] * any(c.kind in ("number", "dates") for c in columns),
        f"scale: {'maxabs' if sparse else 'standard'}",
        *_test_rows(columns, time, groups, is_positive.sum()),
    ]
    head = _top_comments(source, len(is_positive), whole, output, rows.n_files)
    if rows.source.format == "csv" and not rows.source.header and "header" not in source.model_fields_set:
        head.append("The first line holds values and no names: columns are called x1, x2, ...")
    n_indicators = sum(c.n_values for c in columns if c.kind == "categorical") + sum(keys.get("hashed", {}).values())
    n_numbers = sum({"number": 1, "dates": len(c.parts)}.get(c.kind, 0) for c in columns)
    model = _model(sparse, n_numbers, n_indicators, len(is_positive) / rows.share)
    if time:
        model.append(
            f"# folds: {flow({'time': time + '.days' * (kinds.get(time) == 'dates')})}  # for `aucdist cv`: folds at random "
            "promise more than later rows keep"
        )
    return Description(
        commented_yaml(name, head, keys, comments, data, model), len(is_positive), whole, _shown(positive),
        guessed, kinds, {c.name: c.leak for c in columns if c.leak},
        notes, list(_decisions(columns)),
    )  # fmt: skip


def _decisions(columns: list[ColumnGuess]) -> Iterator[tuple[str, str]]:
    """Yield which columns are left out and why, and which numbers may be identifiers."""
    left_out = [f"{c.name} ({shortened(c.comment)})" for c in columns if c.kind == "drop" and c.comment != "as given"]
    codes = [c.name for c in columns if c.kind == "number" and CODES in c.comment]
    if left_out:
        yield "columns-left-out", f"{counted(len(left_out), 'column')} left out: {listed(left_out)}"
    if codes:
        yield (
            "numbers-may-be-codes",
            f"read as numbers: {listed(codes)}. If the numbers of a column are codes, list it under `categorical`",
        )


def _keep_needed(columns: list[ColumnGuess], time: str | None, where: str, key: str) -> list[ColumnGuess]:
    """Return the columns that are used. Dropped ones are used if no other column is left or if the rows are split by them.

    Parameters
    ----------
    columns : list of ColumnGuess
        The columns.
    time : str or None
        The column of times that rows are split by.
    where : str
        The name of the data in error messages.
    key : str
        The key of the option that keeps a column and hashes its values.

    Raises
    ------
    InputError
        If no column is left, or if rows cannot be split by the column of times.
    """
    none_left = all(c.kind == "drop" for c in columns)
    kept = [c for c in columns if c.otherwise and c.kind == "drop" and (none_left or c.name == time)]
    for c in kept:
        c.kind = c.otherwise or c.kind
        c.comment = f"kept, as {'no other column is left' if none_left else '--time splits by it'}: {c.comment}"
    for c in columns:
        if c.name == time and c.kind not in ("number", "dates"):
            raise InputError(f"{where}: {not_in_order(c.name)}")
    if none_left and not kept:
        reasons = [
            f"{c.name}: {shortened(c.comment)}"
            f"{f' (--set {shlex.quote(key + flow({c.name: HASHED_INTO}))} keeps it)' * ('identifier' in c.comment)}"
            for c in columns
        ]
        words = WORDS_FIRST * any(FREE_TEXT in c.comment for c in columns)
        raise InputError(f"{where}: no column is left as a feature: {'; '.join(reasons[:N_SHOWN]) or 'add one'}{words}")
    return kept


def _positive(
    source: Source, labels: Labels, contents: str, columns: Sequence[str], *, whole: bool
) -> tuple[Any, str, np.ndarray]:
    """Choose the positive class.

    Returns
    -------
    tuple (object, str, ndarray)
        The class as the file writes it; how it was chosen, empty if it was given; and whether each row is positive.
    """
    counts, where = labels.counts(), source.display_name
    if source.labels == "grades":
        lowest = above_lowest(counts, source.positive, where)[1]
        return "minority", "", ~np.isin(np.array(labels.names)[labels.class_numbers], lowest)
    if "positive" not in source.model_fields_set and len(counts) > MAX_CLASSES:
        raise InputError(
            f"{where}: {contents} {len(counts)} different values. If these are classes, name the positive one with "
            f"--positive. If they are numbers, this column cannot be the label: name another one with --label. The "
            f"values are: {listed(counts)}{from_last(columns)}"
        )
    if source.of_each:
        return source.model_dump(mode="json")["positive"], "", np.zeros(len(labels.class_numbers), dtype=bool)
    chosen, negative = choose_positive(counts, source.positive, where)
    is_positive = labels.binary_labels(chosen, negative, where) > 0
    if source.positive != "minority":
        return list(chosen) if len(chosen) > 1 else chosen[0], "", is_positive
    each = ", ".join(f"{label}: {n:,}" for label, n in sorted(counts.items(), key=lambda entry: entry[1])[:MAX_CLASSES])
    return (
        chosen[0],
        f"the rare{'r' if len(counts) == 2 else 'st'} one{'' if whole else f' of the first {len(is_positive):,} rows'} "
        f"(rows of each class: {each})",
        is_positive,
    )


def _guesses(
    rows: FirstRows, options: TableOptions, is_positive: np.ndarray, role_columns: set[str]
) -> tuple[list[ColumnGuess], Spelling]:
    """Return the use of each column, according to the source or to its cells, and the spelling of numbers."""
    source, columns = rows.source, {name: rows.columns[name] for name in options.features if name not in role_columns}
    texts = {name: column for name, values in columns.items() if (column := _as_texts(values)) is not None}
    spelled = source.format != "csv" or {"decimal", "thousands", "symbols"} & source.model_fields_set
    looked_at, spelling = contents_of(
        pa.table(texts),
        is_positive,
        Spelling.of(source) if spelled else None,
        tuple(source.missing_values),
        source.date_format,
    )
    chosen_kinds: tuple[Kind, ...] = ("hashed", "dates", "categorical")
    kinds = {name: kind for kind in chosen_kinds for name in getattr(options, kind)}
    for c in looked_at:
        if c.name in options.dates or kinds.get(c.name, c.kind) != c.kind:
            c.kind, c.comment, c.words, c.parts = kinds[c.name], "as given", (), options.dates.get(c.name, ())
    dropped = [
        resolve_column(rows.columns.column_names, column, source.display_name, "drop") for column in source.drop or ()
    ]
    looked_at += [ColumnGuess(name, "drop", "as given") for name in dropped if name != options.label]
    looked_at += [
        ColumnGuess(name, "drop", f"its type is {columns[name].type}") for name in columns if name not in texts
    ]
    return looked_at, spelling


def _as_texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column as strings or as a dictionary of strings.

    None is returned for types that are neither numbers, strings, dates nor times.
    """
    values = plain_values(column)
    try:
        return values if values is None or pa.types.is_dictionary(values.type) else values.cast(pa.string())
    except pa.ArrowException:
        return None


def _source_keys(
    source: Source, label: str, columns: list[ColumnGuess], spelling: Spelling, output: Path | None
) -> Json:
    """Return the keys of the source: those that were given, and those that were detected."""
    keys = _given_keys(source, output) | {"label": label}
    dates, hashed = ([c for c in columns if c.kind == kind] for kind in ("dates", "hashed"))
    names = {kind: [c.name for c in columns if c.kind == kind] for kind in ("drop", "categorical")}
    names["missing_values"] = [word for c in columns if c.kind != "drop" for word in c.words]
    for key, values in names.items():
        if values and keys.get(key) != "auto":
            keys[key] = list(dict.fromkeys([*keys.get(key, ()), *values]))
    if dates:
        keys["dates"] = {c.name: list(c.parts) for c in dates} | keys.get("dates", {})
        if forms := [c.date_format for c in dates if c.date_format is not None]:
            keys.setdefault("date_format", forms[0])
    if hashed:
        keys["hashed"] = {c.name: HASHED_INTO for c in hashed} | keys.get("hashed", {})
    # One new category or one empty cell must not prevent the scoring of all other rows.
    keys.setdefault("missing", "keep")
    if "categorical" in keys:
        keys.setdefault("unknown", "ignore")
    if spelling.decimal != ".":
        keys["decimal"] = spelling.decimal
    spelled = {"thousands": spelling.thousands, "symbols": list(spelling.symbols)}
    return keys | {key: value for key, value in spelled.items() if value}


def _comments(columns: list[ColumnGuess], keys: Json) -> Json:
    """Return the reason for the use of each column by the key that names the column.

    Comments on numbers follow after all keys.
    """
    gaps = ", ".join(f"{c.name} {c.missing:,}" for c in columns if c.missing and c.kind != "drop")
    comments: Json = {
        "date_format": "check that day and month are not swapped",
        "version": "without this key, the newest version is read",
        "symbols": "beside numbers, which they do not change",
        "missing": f"rows without: {gaps}" if gaps else "all cells have values, but those of new rows may not",
        "unknown": "a category that only new rows have counts as none; with `error`, it stops `score`",
        "": [f"number {c.name}: {c.comment}" for c in columns if c.kind == "number"],
    }
    for key in ("drop", "dates", "categorical", "hashed"):
        if keys.get(key) != "auto":
            comments[key] = {c.name: c.comment for c in columns if c.kind == key}
    return comments


def _test_rows(columns: list[ColumnGuess], time: str | None, groups: str | None, n_pos: int) -> list[str]:
    """Return the YAML lines that choose the test rows.

    They are the last rows if there are dates, and else a share of each class.
    """
    keys = {"time": time, "last": TEST_SHARE} if time else {"fraction": 0.2, "seed": 0}
    random = f"test: {flow(keys | ({'groups': groups} if groups else {}))}"
    if time or groups:
        return [random]
    dates = [
        c for c in columns if c.kind == "dates" and "days" in c.parts and c.late[0] and not BIRTH_DATE.search(c.name)
    ]
    if not dates:
        return [random]
    date_column = min(dates, key=lambda c: c.missing)
    rows, positives = date_column.late
    by_time = f"test: {flow({'time': date_column.name, 'last': TEST_SHARE})}"
    if min(positives, rows - positives) < MIN_LATE <= n_pos:
        return [
            random,
            f"# {by_time}  # a test like the future; but of the last {rows:,} rows {positives:,} are positive",
        ]
    return [
        f"{by_time}  # the last rows are the test; `gap: 30` leaves out the 30 days before, if labels are known late"
    ]


def _without_columns(name: str, source: Source, output: Path | None) -> Description:
    """Describe a file whose columns need no description.

    In svmlight files, all features are numbers. KEEL files have a header that describes the columns.
    """
    surveyed, share, constant = survey_first_rows(source)
    kinds = {c: "categorical" if c in surveyed.categories else "number" for c in surveyed.columns}
    if constant:
        source = source.model_copy(update={"drop": [*(source.drop or ()), *constant]})
        surveyed, share, _ = survey_first_rows(source)
    # A survey has no rows, but only the number of rows of each class.
    labels = Labels(np.repeat(np.arange(len(surveyed.classes)), [*surveyed.classes.values()]), tuple(surveyed.classes))
    whole = share == 1.0
    positive, guessed, _ = _positive(source, labels, "the labels have", (), whole=whole)
    file_format = source.format_of()
    n_features = len(file_format.feature_names(surveyed))
    sparse = _is_sparse(source, file_format.is_sparse(surveyed, n_features))
    keys = _given_keys(source, output)
    comments: Json = {"positive": guessed, "drop": constant}
    not_0 = surveyed.stored / max(1, surveyed.rows * surveyed.width)
    comments[""] = [
        f"{surveyed.width:,} features, {not_0:.2%} of their values are not 0: rows are {'sparse' if sparse else 'dense'}"
        if surveyed.width
        else f"{len(surveyed.columns):,} columns, {len(surveyed.categories):,} of strings"
    ]
    data = [f"scale: {'maxabs' if sparse else 'standard'}", "test: {fraction: 0.2, seed: 0}"]
    if surveyed.missing:
        keys.setdefault("missing", "keep")
        comments["missing"] = f"rows without: {', '.join(f'{column} {n:,}' for column, n in surveyed.missing.items())}"
        data.insert(0, IMPUTE_LINE)
    keys = _checked_keys(name, source, keys, positive)
    indicators = sum(map(len, surveyed.categories.values()))
    model = _model(sparse, n_features - indicators, indicators, surveyed.rows / share)
    text = commented_yaml(name, _top_comments(source, surveyed.rows, whole, output), keys, comments, data, model)
    kinds |= dict.fromkeys(source.drop or (), "drop")
    notes = []
    if whole and not source.of_each:
        from aucdist.data.shards.reading import read  # imported here, because tables do not need it
        from aucdist.drift.leaks import column_warnings, sample_of
        from aucdist.engine.blocks import LocalBlocks

        data_set = read(source.model_copy(update={"positive": positive, "missing": "keep"}), name=name)
        notes = [text for _, text in column_warnings(sample_of(LocalBlocks([data_set.block])), data_set.schema)]
    return Description(text, surveyed.rows, whole, _shown(positive), guessed, kinds, {}, notes)


def _is_sparse(source: Source, by_contents: bool) -> bool:
    """Return whether rows are sparse. The source says so, or else the content of the file decides."""
    return source.layout == "csr" or (source.layout == "auto" and by_contents)


def _model(sparse: bool, n_numbers: int, n_indicators: int, n_rows: float) -> list[str]:
    """Return the YAML of the model, given the number of features that are numbers, and of 0/1 features of categories."""
    width = n_numbers + n_indicators / INDICATORS_A_NUMBER
    lines = [
        READABLE,
        "# `features: auto` also tries maps that cannot be read; without `features`, the model is linear.",
    ]
    if sparse or width > min(max(NARROW, n_rows / ROWS_A_NUMBER), WIDE):
        lines = [LINEAR_MODEL]
    return lines


def _checked_keys(name: str, source: Source, keys: Json, positive: Any) -> Json:
    """Return the keys of the source with the positive class, in the order of the reference.

    Raises
    ------
    InputError
        If the keys contradict each other.
    """
    if source.labels != "grades":
        keys["positive"] = positive
    parse_source(keys | {"source": source.source}, name)
    return {key: keys[key] for key in Source.model_fields if key in keys}


def _top_comments(source: Source, n: int, whole: bool, output: Path | None, n_files: int = 1) -> list[str]:
    """Return the comments at the top of the YAML."""
    rows = f"{'the' if whole else 'the first'} {n:,} rows"
    if not whole and n_files > 1:
        rows = f"{n:,} rows, the first of each of {n_files} files,"
    origin = f"from {rows} of {source.display_name.rpartition('/')[2]}"
    if output is None:
        return [f"Made {origin}, as by `aucdist init`."]
    return [
        f"Written by `aucdist init` {origin}.",
        "Change what is wrong. Then:",
        f"  aucdist data preview {output.name}    prints how each column is encoded",
        f"  aucdist train {output.name}           trains, and writes a report",
    ]


def _shown(positive: Any) -> str:
    return positive if isinstance(positive, str) else flow(positive)


def _given_keys(source: Source, output: Path | None) -> Json:
    """Return the keys of a source that were given or detected, as JSON values.

    A file in the folder of the YAML file is named by its path relative to this folder.
    """
    keys = source.model_dump(mode="json", exclude_defaults=True)
    keys |= source.model_dump(mode="json", include=source.model_fields_set)
    folder, urls = None if output is None else output.absolute().parent, []
    for url in source.urls():
        path = local_path(url)
        if path is None:
            urls.append(shown(url) if folder is None else reveal(url))
        else:
            urls.append(str(path.relative_to(folder) if folder and path.is_relative_to(folder) else path))
    return keys | {"source": urls[0] if len(urls) == 1 else urls}


# ---- the YAML --------------------------------------------------------------------------------------------------------


LINEAR_MODEL = "model: {estimator: PairwiseHingeClassifier, lam: 1e-3, tol: 1e-3}  # search `lam` by `aucdist cv`"
"""The model for sparse rows, for example of hashed columns, and for wide tables."""
READABLE = "model: {estimator: PairwiseHingeClassifier, features: {map: auto, readable: true}, tol: 1e-3}"
"""The model for tables. On 30 of them and two splits each, with at most 10,000 training rows, it has a mean AUC of 0.879 and a
mean average precision of 0.617. Bins with ten interactions and lam 1e-3 have 0.854 and 0.576."""
NARROW, ROWS_A_NUMBER, INDICATORS_A_NUMBER, WIDE = 50, 64, 10, 2000
"""A table of more numbers than the first figure is wide if it has fewer rows for each of them than the second, or more numbers
than the last. Ten 0/1 features of categories count as one number. Bins make some 20 features of each number, which takes minutes
for 1,600 rows of 1,000 numbers, but one of a 0/1 feature: 1,600 rows take 1.8 CPU seconds with 500 of these (linear 1.0, with the
same AUC) and 1.3 with 50 numbers, but 12,600 of them take minutes. More than 20,000 features are refused."""
MAX_COMMENT = 90
PLAIN_YAML = re.compile(r"(?!(?i:y|n|yes|no|true|false|on|off|null|nan|inf)$)[A-Za-z][A-Za-z0-9_./-]*")
"""Text that is a string in YAML without quotes, in all versions of it."""


def quoted(text: str) -> str:
    """Return a string as a YAML scalar, in quotes if necessary."""
    if PLAIN_YAML.fullmatch(text):
        return text
    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))).rstrip("\n")


def flow(value: Any) -> str:
    """Return a JSON value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    return quoted(value) if isinstance(value, str) else str(yaml.safe_dump(value)).partition("\n")[0]


def comment(text: str) -> str:
    """Return a text as a YAML comment of one line."""
    text = printable(text.replace("\n", " "))
    return f"# {text if len(text) <= MAX_COMMENT else text[: MAX_COMMENT - 3] + '...'}"


def commented_yaml(
    name: str, head: Sequence[str], source: Json, comments: Json, data: Sequence[str], model: Sequence[str]
) -> str:
    """Return a configuration for training.

    Parameters
    ----------
    name : str
        The name of the data, which the name of the run is made from.
    head : sequence of str
        The comments at the top.
    source : dict
        The keys of the source.
    comments : dict
        For keys of the source, a comment, or one for each entry of the key. Comments without a key follow after all keys.
    data : sequence of str
        The lines below `data`.
    model : sequence of str
        The line of the model, and its comments.
    """
    run_name = re.sub(r"[^A-Za-z0-9._+-]+", "-", name).lstrip("._+-") or "data"
    lines = [*map(comment, head), f"name: {quoted(run_name)}", "data:", "  source:"]
    for key, value in source.items():
        comment_of_key = comments.get(key, "")
        if isinstance(comment_of_key, Mapping) and value:
            lines.append(f"    {key}:")
            for entry in value:
                text = f"{flow(entry)}: {flow(value[entry])}" if isinstance(value, Mapping) else f"- {flow(entry)}"
                lines.append(f"      {text}{f'  {comment(comment_of_key[entry])}' if entry in comment_of_key else ''}")
        else:
            lines.append(f"    {key}: {flow(value)}{f'  {comment(comment_of_key)}' if comment_of_key else ''}")
    lines += [f"    {comment(text)}" for text in comments.get("", ())]
    lines += [f"  {line}" for line in data]
    lines += [*model, "cluster: {kind: none}"]
    return "\n".join(lines) + "\n"
