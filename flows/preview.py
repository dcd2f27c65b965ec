"""The command `data preview`: show how each column is encoded, as a table and as a page with a histogram of each column."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from aucdist.data.block import Block, Columns, each_of
from aucdist.data.dataset import Dataset, Schema
from aucdist.data.formats.table_options import MISSING_CATEGORY
from aucdist.data.label_sets import LabelSets
from aucdist.data.labels import listed
from aucdist.data.shards.reading import read
from aucdist.data.sources import Source
from aucdist.data.storage import files
from aucdist.drift.leaks import MANY_KNOWN, Sample, column_warnings, rank_by_each_column, sample_of
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError, Json, counted
from aucdist.report.text import render_template
from aucdist.selection import duplicates
from flows.config.data import DataConfig, DataFileOptions, configured_source, is_yaml, source_from_name
from flows.config.loading import (
    Cli,
    NameArgument,
    SettingsOption,
    apply_setting,
    configs_folder,
    find_config,
    find_sources,
    read_mapping,
    validated,
)
from flows.rows.rows import FeatureEncoding
from flows.train.config import TrainOptions

MAX_CLASSES = 30
"""The largest number of classes whose columns are examined. If there are more, those with the most rows are."""
MAX_COLUMNS = 60
"""The largest number of columns that are listed."""
MAX_FEATURES = 5
"""The largest number of features of a column that are named."""
MAX_FILES = 50
"""The largest number of files that are read one by one."""
MAX_DRAWN = 200
"""The largest number of columns that are drawn."""
BINS = 20
"""The number of bars of a column of numbers."""
MAX_BARS = 12
"""The largest number of bars of a column of categories."""


def look_at_classes(schema: Schema, block: Block) -> tuple[list[Json], list[str]]:
    """Describe the classes of a data set, and warn about its rows.

    Returns
    -------
    tuple (list of dict, list of str)
        First the classes, the most frequent one first. Each has ``class``, ``rows``, ``column`` and ``auc``. ``column`` is the
        single column that ranks the rows of the class best above all others, and ``auc`` is its AUC. Both are None if there are
        more than `MAX_CLASSES` classes or if the data are too wide. Then the warnings; each occurs once, even if it applies to
        several classes.
    """
    assert block.code is not None
    classes: list[Json] = []
    by_class: dict[str, list[str]] = {}
    sets = LabelSets.of_schema(schema)
    for rank, k in enumerate(np.argsort(-sets.counts(block.code), kind="stable").tolist()):
        name, view = sets.names()[k], replace(block, y=sets.labels_against_rest(k)[block.code], code=None)
        classes.append({"class": name, "rows": view.n_pos, "column": None, "auc": None})
        if rank < MAX_CLASSES:
            sample = sample_of(LocalBlocks([view]))
            if alone := rank_by_each_column(sample, schema):
                best = max(alone, key=lambda column: alone[column].auc)
                classes[-1] |= {"column": best, "auc": alone[best].auc}
            for _, text in column_warnings(sample, schema):
                by_class.setdefault(text, []).append(name)
    looked_at = min(MAX_CLASSES, len(schema.classes))
    return classes, [
        text if len(names) == looked_at else f"Class {', '.join(map(repr, names))} against the rest: {text}"
        for text, names in by_class.items()
    ]


class PreviewConfig(DataFileOptions):
    """A data set whose columns are summarised."""

    config: NameArgument
    """A YAML file of a run or of a source, the name of one in configs/train, or a file or URL. With `label`, the
    configuration of a file is made as by `aucdist init`."""
    settings: SettingsOption
    """Change a key, as in --set data.scale=none. May be repeated."""
    html: Annotated[Path | None, Cli(metavar="FILE")] = None
    """Also write a page with a histogram by class of each column to this file."""


def preview(config: PreviewConfig) -> Json:
    """Read a data set, and return how each of its columns is encoded.

    Returns
    -------
    dict
        ``name``, ``rows``, ``positives``, ``positive``, ``negative`` and ``n_features``. ``classes``, for several classes, see
        `look_at_classes`. ``columns``, a list of dicts with ``column``, ``becomes`` and ``features``. ``dropped`` and ``then``,
        what is done to the features before a fit. ``warnings``, sentences about what makes results on the test rows better
        than on new rows.

    Raises
    ------
    InputError
        If the configuration or the data is wrong.
    """
    options, page = config.model_dump(exclude={"html"}, exclude_none=True), config.html
    of_file = options.keys() & DataFileOptions.model_fields
    data = TrainOptions(**options).load().data if of_file else _data_config(config.config, config.settings)
    source = configured_source(data)
    if source.is_sharded:
        raise InputError(
            f"{source.display_name} is sharded, so its columns are encoded already: `aucdist data show` lists the features"
        )
    data_set = read(source, name=data.name or "")
    schema = data_set.schema
    if schema.classes:
        classes, leaks = look_at_classes(schema, data_set.block)
    else:
        classes, leaks = [], [text for _, text in column_warnings(sample_of(LocalBlocks([data_set.block])), schema)]
    warnings = leaks + _files_of_one_class(source, schema)
    n_rows = data_set.block.n_samples
    n_repeated = n_rows - len(np.unique(duplicates(data_set.block)))
    if n_repeated > MANY_KNOWN * n_rows:
        warnings.append(
            f"{n_repeated:,} of {n_rows:,} rows equal{'s' * (n_repeated == 1)} another row in all features, and a random split "
            "puts some on both sides. If they are copies of one case, keep one."
        )
    if page is not None:
        write_page(page, data_set, warnings, classes)
    # This raises an error for columns that cannot be imputed or scaled.
    FeatureEncoding(data, schema).fit(each_of([data_set.block]))
    steps = [f"impute: {data.impute}"] * (data.impute != "refuse")
    if data.log1p is not None:
        steps.append(f"log1p: {data.log1p if isinstance(data.log1p, str) else ', '.join(data.log1p)}")
    return {
        "name": data_set.name,
        "rows": n_rows,
        "positives": data_set.block.n_pos,
        "positive": list(schema.positive),
        "negative": list(schema.negative),
        **({"classes": classes} if classes else {}),
        "n_features": len(schema.feature_names),
        "columns": [
            _column(schema, data_set.block, column, list(features))
            for column, features in itertools.islice(schema.by_column().items(), MAX_COLUMNS)
        ],
        "dropped": list(source.drop or []),
        "then": steps + [f"scale: {data.scale}"] * (data.scale != "none"),
        "warnings": warnings,
        **({} if page is None else {"page": str(page)}),
    }


def _files_of_one_class(source: Source, schema: Schema) -> list[str]:
    """Return a warning if a source has several files and each of them has rows of one class only."""
    file_format = source.format_of(schema)
    parts = file_format.whole_files()
    if not 2 <= len(parts) <= MAX_FILES or schema.classes:
        return []
    for part in parts:
        survey = file_format.read_part(part).survey
        if 0 < survey.n_rows_of(schema.positive) < survey.rows:
            return []
    return [
        f"Each of the {len(parts)} files has rows of one class only: whatever differs between files gives the label away, and a "
        "random split does not show it."
    ]


def _data_config(config: str, settings: Sequence[str]) -> DataConfig:
    """Return the `data` of a run's YAML file. A file with only a source becomes the data with this source."""
    if is_yaml(config) or (configs_folder("train") / f"{config}.yaml").is_file():
        path = find_config(config)
        raw = read_mapping(path)
        if "data" in raw:
            for setting in settings:
                apply_setting(raw, setting)
            return validated(DataConfig, find_sources(raw, path.parent)["data"], f"{path}: data")
    return DataConfig(source=source_from_name(config, settings)[1])


def _column(schema: Schema, block: Block, column: str, features: list[int]) -> Json:
    names = [schema.feature_names[j] for j in features]
    values = map(Columns(block).__getitem__, features[:MAX_FEATURES])
    kind = column_kind(column, schema)
    has_rows = kind in ("categories", "hashed")
    about = [
        f"{name} ({counted(int(np.count_nonzero(column_values)), 'row') if has_rows else _range(column_values)})"
        for name, column_values in zip(names, values, strict=False)
    ]
    about += [f"and {len(names) - len(about)} more"] * (len(names) > len(about))
    return {"column": column, "becomes": kind, "n_features": len(names), "features": about}


def column_kind(column: str, schema: Schema) -> str:
    """Return what a column is encoded as: ``number``, or a description of several features."""
    return next((kind for kind in ("categories", "hashed", "dates") if column in getattr(schema, kind)), "number")


def _range(values: np.ndarray) -> str:
    """Describe the range of a column and the number of its missing values."""
    present = values[~np.isnan(values)]
    missing = len(values) - len(present)
    text = f"{present.min():.6g} to {present.max():.6g}" if len(present) else "no values"
    return f"{text}{f', {missing:,} missing' if missing else ''}"


def preview_lines(seen: Json) -> list[str]:
    """Return the lines that `aucdist data preview` prints."""
    rows, positives = seen["rows"], seen["positives"]
    if "classes" in seen:
        lines = [f"{seen['name']}: {counted(rows, 'row')}, {len(seen['classes'])} classes, each against the rest"]
        for about in seen["classes"]:
            alone = (
                f", best column alone {about['column']} (AUC {about['auc']:.3f})" if about["column"] is not None else ""
            )
            lines.append(f"  {about['class']}: {counted(about['rows'], 'row')}{alone}")
    else:
        lines = [
            f"{seen['name']}: {counted(rows, 'row')}, {positives:,} positive ({listed(seen['positive'])}), "
            f"{rows - positives:,} negative ({listed(seen['negative'])})"
        ]
    width = max(len("column"), *(min(32, len(c["column"])) for c in seen["columns"]))
    lines.append(f"{'column':{width}}  becomes     features")
    for c in seen["columns"]:
        lines.append(f"{c['column']:{width}}  {c['becomes']:10}  {c['n_features']}: {', '.join(c['features'])}")
    if more := seen["n_features"] - sum(c["n_features"] for c in seen["columns"]):
        lines.append(f"and {counted(more, 'more feature')}")
    if seen["dropped"]:
        lines.append(f"not read: {', '.join(seen['dropped'])}")
    lines.append(counted(seen["n_features"], "feature") + "".join(f", then {step}" for step in seen["then"]))
    lines += [f"warning: {text}" for text in seen["warnings"]]
    return lines + ([f"page: {seen['page']}"] if "page" in seen else [])


class ColumnDrawing(NamedTuple):
    """The drawing of a column on the page.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : str
        What the column is encoded as.
    auc : float
        The AUC of the column alone.
    range : str
        The range of the values as text.
    missing : float
        The share of rows without a value.
    bars : list of tuple (float, float, str)
        For each bar the share of the negative rows, the share of the positive rows, and a label.
    """

    name: str
    kind: str
    auc: float
    range: str
    missing: float
    bars: list[tuple[float, float, str]]


def write_page(path: Path, data: Dataset, warnings: list[str], classes: list[Json]) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
        The file to write.
    data : Dataset
        The data set.
    warnings : list of str
        The warnings about the rows.
    classes : list of dict
        Several classes, as `look_at_classes` returns them. The histograms show the first one against the rest.

    Raises
    ------
    InputError
        If jinja2 is not installed, or the file cannot be written.
    """
    block = data.block
    if classes:
        sets = LabelSets.of_schema(data.schema)
        block = replace(
            block, y=sets.labels_against_rest(sets.names().index(classes[0]["class"]))[block.code], code=None
        )
    sample = sample_of(LocalBlocks([block]))
    page = render_template(
        Path(__file__).with_name("preview.html"), title=data.name.rpartition("/")[2], schema=data.schema, block=block,
        n_drawn=len(sample.values), classes=classes, warnings=warnings, columns=shown_columns(sample, data.schema),
    )  # fmt: skip
    files.write_bytes(str(path.absolute()), page.encode())


def shown_columns(sample: Sample, schema: Schema) -> list[ColumnDrawing]:
    """Return the drawings of the columns. Those with the highest AUC come first."""
    alone, features = rank_by_each_column(sample, schema), schema.by_column()
    return [
        _drawing_of(name, features[name], alone[name].auc, sample, schema)
        for name in sorted(alone, key=lambda name: (-alone[name].auc, name))[:MAX_DRAWN]
    ]


def _drawing_of(name: str, features: dict[int, Any], auc: float, sample: Sample, schema: Schema) -> ColumnDrawing:
    """Return the drawing of a column.

    The keys of `features` are the positions of the features that the column is encoded as. The values are their categories or
    numbers.
    """
    sides, kind = [~sample.positive, sample.positive], column_kind(name, schema)
    if kind in ("categories", "hashed"):
        values = [str(item) for item in features.values()]
        flags = sample.values[:, list(features)] > 0
        order = np.argsort(-flags.sum(axis=0), kind="stable")[:MAX_BARS]
        counts = [flags[side].sum(axis=0)[order] for side in sides]
        labels = [values[i] for i in order]
        shown_range = f"{len(values)}: {', '.join(labels[:3])}"
        missing = float(flags[:, values.index(MISSING_CATEGORY)].mean()) if MISSING_CATEGORY in values else 0.0
    else:
        column = sample.values[:, list(features)[-1]]  # the last part of a date stands for the date
        present = ~np.isnan(column)
        if not present.any():
            return ColumnDrawing(name, kind, auc, "no values", 1.0, [])
        distinct = np.unique(column[present])
        low, high = distinct[[0, -1]].tolist()
        if len(distinct) <= MAX_BARS:
            cells = np.searchsorted(distinct, column[present])
            labels = [f"{value:.6g}" for value in distinct]
        else:
            first, last = np.quantile(column[present], [0.01, 0.99]).tolist()
            first, last = (first, last) if first < last else (low, high if high > low else low + 1.0)
            edges = np.linspace(first, last, BINS + 1)
            cells = np.clip(np.searchsorted(edges, column[present], "right") - 1, 0, BINS - 1)
            labels = [f"{a:.4g} to {b:.4g}" for a, b in itertools.pairwise(edges)]
        counts = [np.bincount(cells[side[present]], minlength=len(labels)) for side in sides]
        shown_range, missing = f"{low:.4g} to {high:.4g}", 1.0 - float(present.mean())
    negative, positive = (count / max(1, int(side.sum())) for count, side in zip(counts, sides, strict=True))
    return ColumnDrawing(
        name, kind, auc, shown_range, missing, list(zip(negative.tolist(), positive.tolist(), labels, strict=True))
    )
