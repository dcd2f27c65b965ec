"""Looks at a file, and writes a configuration for it."""

import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from aucdist.data.formats.spelling import Spelling
from aucdist.data.labels import Labels, choose_positive, listed
from aucdist.data.sources.source import Source
from aucdist.data.storage import files
from aucdist.data.storage.arrow_files import local_path
from aucdist.drift.traps import SUSPICIOUS
from aucdist.errors import InputError
from flows.config.base import Cli, Strict
from flows.config.sources import source_from_name
from flows.init.columns import ColumnGuess, columns_of
from flows.init.directions import direction_of, rows_of_class
from flows.init.layout import found_layout
from flows.init.leaks import with_auc
from flows.init.no_columns import is_svmlight, look_at
from flows.init.read import FirstRows, first_rows
from flows.init.text import quoted, rows_yaml_text, yaml_text
from flows.progress.console import RunObserver

MOST_CLASSES = 20
FORMATS_OF_COLUMNS = ("csv", "parquet", "jsonl", "arrow", "excel", "sql", "delta", "iceberg")
FORMATS_WITHOUT_COLUMNS = ("svmlight", "keel")


class InitConfig(Strict):
    """A file that is looked at."""

    data: Annotated[str, Cli(place=1)] = Field(description="A CSV, Parquet, svmlight or KEEL file, a path or a URL")
    label: Annotated[str | None, Cli(metavar="COLUMN")] = Field(
        default=None, description="The column with the classes; svmlight and KEEL files name it themselves"
    )
    output: Annotated[Path | None, Cli(metavar="FILE")] = Field(
        default=None, description="The YAML file; by default the name of the data, in this folder"
    )
    settings: Annotated[list[str], Cli(flag="--set", metavar="KEY=VALUE")] = Field(
        default=[], description="Change a key of the source, as in --set label=clicked. May be repeated"
    )
    force: Annotated[bool, Cli()] = Field(default=False, description="Replace the YAML file if it is there")


def init(config: InitConfig, observer: RunObserver) -> dict[str, Any]:
    """Write a configuration for training.

    Raises InputError if the file cannot be read, or its label column has no classes.
    """
    name, source = source_from_name(
        config.data, config.settings, label=config.label,
        otherwise=lambda: "svmlight" if is_svmlight(config.data) else None,
    )  # fmt: skip
    file = config.output or Path(f"{name}.yaml")
    if file.exists() and not config.force:
        raise InputError(f"{file} is there already: name another by --output, or replace it by --force")
    return describe(name, source, file)


def init_lines(result: dict[str, Any]) -> list[str]:
    """Return what `aucdist init` prints."""
    file = result["config"]
    return [
        *(f"{column:24} {kind}" for column, kind in result["columns"].items()),
        *(
            f"warning: column {column!r} alone tells the classes apart; if it is known only once the label is, list it under "
            f"`drop` in {file}"
            for column in result["leaks"]
        ),
        f"{file}: {result['rows']:,} rows, positive class {result['positive']!r}",
        f"next: aucdist data preview {file} --html {Path(file).stem}.html",
    ]


def describe(name: str, source: Source, output: Path) -> dict[str, Any]:
    """Write a configuration for a source with its label column, and return what ``aucdist init --json`` prints."""
    if source.format in FORMATS_WITHOUT_COLUMNS:
        return _init_without_columns(name, source, output)
    if source.format not in FORMATS_OF_COLUMNS:
        raise InputError(
            f"`aucdist init` looks at files of {', '.join(FORMATS_OF_COLUMNS + FORMATS_WITHOUT_COLUMNS)}, and this is "
            f"{source.format}, which says all by itself"
        )
    rows = first_rows(source)
    spelling = Spelling.of(rows.source)
    classes = _classes(rows)
    positive = choose_positive(classes, source.positive, files.shown(str(source.source)))[0][0]
    columns = columns_of(rows.texts, [column for column in rows.texts if column not in ("", rows.label)], spelling)
    columns += [ColumnGuess(column, "drop", f"its type is {kind}") for column, kind in rows.unread.items()]
    positives = rows_of_class(rows.classes, positive)
    columns = [with_auc(column, rows.texts, positives, spelling) for column in columns]
    n, head = len(rows.classes), _head_comments(source, len(rows.classes), rows.whole, output, rows.n_files)
    if rows.source.format == "csv" and not rows.source.header and "header" not in source.model_fields_set:
        head.append("The first line holds values and no names: columns are called x1, x2, ...")
    head += [] if rows.source.format != "csv" else found_layout(source, rows.source)
    keys = _file_keys(rows.source, output) | {"label": quoted(rows.label)}
    words = dict.fromkeys((*source.missing_values, *(word for column in columns for word in column.words)))
    keys |= {"missing_values": f"[{', '.join(map(quoted, words))}]"} if words else {}
    found = {c.name: direction_of(rows.texts[c.name], positives, spelling) for c in columns if c.kind == "number"}
    directions = {column: direction for column, direction in found.items() if direction is not None}
    text = yaml_text(_config_name(name), keys, columns, list(classes.items()), positive, head, directions)
    files.write_bytes(str(output.absolute()), text.encode())
    kinds = {column.name: column.kind for column in columns}
    leaks = [column.name for column in columns if column.auc >= SUSPICIOUS]
    return {
        "config": str(output), "rows": n, "all_rows": rows.whole, "positive": positive, "columns": kinds,
        "leaks": leaks,
    }  # fmt: skip


def _init_without_columns(name: str, source: Source, output: Path) -> dict[str, Any]:
    found = look_at(source)
    classes, n = found.survey.classes, found.survey.rows
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"the labels have {len(classes)} different values ({listed(classes)}): more than {MOST_CLASSES} are no classes"
        )
    positive = choose_positive(classes, source.positive, files.shown(str(source.source)))[0][0]
    text = rows_yaml_text(
        _config_name(name), _file_keys(source, output), list(classes.items()), positive,
        _head_comments(source, n, found.whole, output), [found.comment()], found.survey.missing, found.sparse,
    )  # fmt: skip
    files.write_bytes(str(output.absolute()), text.encode())
    return {"config": str(output), "rows": n, "all_rows": found.whole, "positive": positive, "columns": {}, "leaks": []}


def _head_comments(source: Source, n: int, whole: bool, output: Path, n_files: int = 1) -> list[str]:
    """Return the comments at the top of the YAML."""
    rows = f"{'the' if whole else 'the first'} {n:,} rows"
    if not whole and n_files > 1:
        rows = f"{n:,} rows, the first of each of {n_files} files,"
    return [
        f"Written by `aucdist init` from {rows} of "
        f"{files.shown(str(source.source)).rpartition('/')[2]}. Change what is wrong. Then:",
        f"  aucdist data preview {output.name}    prints what becomes of each column",
        f"  aucdist train {output.name}           trains, and writes a report",
    ]


def _classes(rows: FirstRows) -> dict[str, int]:
    """Return the number of rows of each class."""
    counts = Labels.of(np.asarray(rows.classes.codes), tuple(rows.classes.categories)).counts()
    if len(counts) > MOST_CLASSES:
        raise InputError(
            f"the label column {rows.label!r} has {len(counts)} different values ({listed(counts)}): more than "
            f"{MOST_CLASSES} are no classes; name another column by --label, one of {', '.join(list(rows.texts)[:MOST_CLASSES])}"
        )
    return counts


def _config_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).lstrip("._+-") or "data"


def _file_keys(source: Source, output: Path) -> dict[str, str]:
    """Return file and format as they are written; a file below the folder of the YAML by its relative path."""
    folder, given = output.absolute().parent, []
    for url in source.urls():
        path = local_path(url)
        below = path is not None and path.is_relative_to(folder)
        given.append(url if path is None else str(path.relative_to(folder) if below else path))
    keys = {"source": quoted(given[0]) if len(given) == 1 else f"[{', '.join(map(quoted, given))}]"}
    keys["format"] = source.format
    if source.format == "csv" and source.separator != ",":
        keys["separator"] = quoted(source.separator)
    if source.format == "csv" and not source.header:
        keys["header"] = "false"
        keys |= {"columns": f"[{', '.join(map(quoted, source.columns))}]"} if source.columns else {}
    for key in ("encoding", "quote", "skip_lines", "decimal", "thousands"):
        if getattr(source, key) != Source.model_fields[key].default:
            keys[key] = quoted(str(getattr(source, key))) if key != "skip_lines" else str(source.skip_lines)
    for key in ("query", "sheet"):
        if (value := getattr(source, key)) is not None:
            keys[key] = quoted(value)
    if source.symbols:
        keys["symbols"] = f"[{', '.join(map(quoted, source.symbols))}]  # beside numbers, which they do not change"
    return keys
