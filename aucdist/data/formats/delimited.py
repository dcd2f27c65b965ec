"""CSV files and KEEL ``.dat`` files: what their headers say, and the lines below them."""

import re
from collections.abc import Sequence
from dataclasses import replace

from aucdist.data.dataset import Schema
from aucdist.data.date_parts import DatePart
from aucdist.data.formats.dates import refuse_dates
from aucdist.data.formats.encodings import as_utf8
from aucdist.data.formats.header import BLANKS, first_row, pick, unique
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.spelling import Spelling
from aucdist.data.formats.table_form import MISSING_CATEGORY, TableForm
from aucdist.data.formats.tables import Table, infer_texts, parse_table
from aucdist.data.labels import listed
from aucdist.data.storage import files
from aucdist.errors import InputError

SEPARATORS = {"space": BLANKS, "tab": "\t"}
QUOTES = {"double": '"', "single": "'"}
SHOWN = 5
ATTRIBUTE = re.compile(
    r"""(?P<name>'[^']*'|"[^"]*"|[^\s{\[]+)\s*(?P<domain>\{.*\}|(?:real|integer|numeric)\b.*)""", re.I
)


def parse_csv(data: bytes, source: SourceFields, part: FilePart, schema: Schema | None) -> Table:
    """Read a CSV file, or a part of one.

    `part`: names the file in errors. A range of a file, which has no header, brings the names of its columns.
    `schema`: that of the training data, for a file that must be encoded like it.
    Raises InputError if the header or a cell is wrong, naming line and column.
    """
    where, first_line = files.shown(part.url), part.line or 1
    data = as_utf8(data, where, source, first_line)
    names = list(part.columns)
    if not names:
        names, start, first_line = csv_head(data, where, source)
        data = data[start:]
    label = "" if source.label is None else pick(names, source.label, where, "label")
    features = features_in(source, schema, names, label, where)
    form = TableForm(
        names,
        label,
        features,
        hashed=hashed_in(source, schema, features, where),
        dates=dates_in(source, schema, features, where),
        date_format=source.date_format,
        separator=separator_of(source),
        first_line=first_line,
        allowed=schema.categories if schema else {},
        missing=source.missing == "keep",
        unknown=source.unknown,
        dtype=source.dtype or "float64",
        spelling=Spelling.of(source),
        groups=groups_in(source, names, where),
        cost=cost_in(source, names, where),
    )
    if schema is not None or source.categorical != "auto":
        return parse_table(data, where, replace(form, categorical=categorical_in(source, schema, features, where)))
    texts = (infer_texts(data, where, form) & set(features)) - {*form.hashed, *form.dates, form.cost}
    table = parse_table(data, where, replace(form, categorical=texts))
    refuse_dates(sorted(texts), table.texts, MISSING_CATEGORY, where)
    return table


def features_in(
    source: SourceFields, schema: Schema | None, names: Sequence[str], label: str | None, where: str
) -> tuple[str, ...]:
    """Return the columns that become features: those of `keep`, or all, without those of `drop`, the label, groups and costs.

    Costs that `keep` names are a feature as well.
    """
    if schema is not None and source.keep is not None:
        lacking = [name for name in source.keep if name not in names]
        if lacking:
            more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            raise InputError(
                f"{where} lacks column{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking[:SHOWN]))}{more}, which the model "
                f"needs; it has: {listed(names)}"
            )
    kept = names if source.keep is None else [pick(names, name, where, "keep") for name in source.keep]
    dropped = {pick(names, name, where, "drop") for name in source.drop or ()}
    apart = {label, groups_in(source, names, where), *([] if source.keep else [cost_in(source, names, where)])}
    return tuple(name for name in kept if name not in apart and name not in dropped)


def groups_in(source: SourceFields, names: Sequence[str], where: str) -> str:
    """Return the column that says which rows belong together; empty where the source names none."""
    return "" if source.groups is None else pick(names, source.groups, where, "groups")


def cost_in(source: SourceFields, names: Sequence[str], where: str) -> str:
    """Return the column that says what wrong decisions cost; empty where the source names none."""
    return "" if source.cost_column is None else pick(names, source.cost_column, where, "cost_column")


def categorical_in(source: SourceFields, schema: Schema | None, features: Sequence[str], where: str) -> set[str]:
    """Return the columns that were categorical in the training data, or that the source names as such."""
    if schema is not None:
        return set(schema.categories) & set(features)
    named = [] if source.categorical == "auto" else source.categorical
    return {pick(features, column, where, "categorical") for column in named}


def hashed_in(source: SourceFields, schema: Schema | None, features: Sequence[str], where: str) -> dict[str, int]:
    """Return the columns that are hashed, in the training data or by the source, and into how many features."""
    hashed = source.hashed if schema is None else schema.hashed
    return {pick(features, column, where, "hashed"): n for column, n in hashed.items()}


def dates_in(
    source: SourceFields, schema: Schema | None, features: Sequence[str], where: str
) -> dict[str, tuple[DatePart, ...]]:
    """Return the columns that are dates, in the training data or by the source, and the parts that become numbers."""
    dates = source.dates if schema is None else schema.dates
    return {pick(features, column, where, "dates"): tuple(parts) for column, parts in dates.items()}


def separator_of(source: SourceFields) -> str:
    """Return what stands between the cells of a CSV file."""
    return SEPARATORS.get(source.separator, source.separator)


def with_names(cells: Sequence[str]) -> list[str]:
    """Return the cells of a header, with names for empty ones: ``index`` for the first, as pandas writes it, else x2, x3, ..."""
    if not any(cells):
        return list(cells)
    made = ["index" if i == 1 and "index" not in cells else f"x{i}" for i in range(1, len(cells) + 1)]
    return [cell or name for cell, name in zip(cells, made, strict=True)]


def csv_head(
    data: bytes, where: str, source: SourceFields, encoding: str = "utf-8", n_skipped: int | None = None
) -> tuple[list[str], int, int]:
    """Return the column names of a CSV file, where its rows start, and the number of the line there.

    `encoding`: of `data`.
    `n_skipped`: lines that are passed over first; by default those that the source says.
    """
    skip, start = source.skip_lines if n_skipped is None else n_skipped, 0
    for i in range(skip):
        start = data.find(b"\n", start) + 1
        if start == 0:
            raise InputError(f"{where} has {i + 1} lines, and `skip_lines` passes over {skip}")
    next_line, cells, end = first_row(
        data, where, separator_of(source), start=start, encoding=encoding, quote=QUOTES[source.quote]
    )
    if source.header:
        return unique(with_names(cells), where), end, next_line
    return unique(source.columns or [f"x{i}" for i in range(1, len(cells) + 1)], where), start, 1 + skip


def parse_keel(data: bytes, where: str, source: SourceFields, schema: Schema | None) -> Table:
    """Read a KEEL file: ``@attribute`` lines with types, ``@inputs``, ``@outputs``, ``@data``, then cells and commas.

    The categories of a nominal attribute are those that it declares, whether they occur or not, so that the parts of a
    partitioned data set are encoded alike. Without ``@inputs`` all other attributes are features; without
    ``@outputs`` the last attribute is the label. `where` names the file in errors, which are those of `parse_csv`.
    """
    domains, roles, data, first_line = _keel_head(data, where)
    names = list(domains)
    outputs = roles.get("output") or names[-1:]
    if source.label is None and len(outputs) != 1:
        raise InputError(f"{where}: several outputs ({', '.join(outputs)}); name one of them with `label`")
    label = pick(names, outputs[0] if source.label is None else source.label, where, "label")
    inputs = roles.get("input") or [name for name in names if name not in outputs]
    if schema is not None:  # as of other tables, a model takes its columns, whatever else there is
        inputs = [name for name in schema.columns() if name in names]
    groups, cost = groups_in(source, names, where), cost_in(source, names, where)
    features = tuple(pick(names, name, where, "@inputs") for name in inputs if name not in (label, groups, cost))
    texts = categorical_in(source, schema, features, where)
    if schema is None:
        texts |= {name for name in features if domains[name]}
    missing = source.missing == "keep"
    more = (MISSING_CATEGORY,) if missing else ()
    allowed = {name: domain if name == label else (*domain, *more) for name, domain in domains.items() if domain}
    form = TableForm(
        names, label, features, texts, hashed_in(source, schema, features, where), ",", first_line,
        allowed | (schema.categories if schema else {}), missing, source.dtype or "float64", spelling=Spelling.of(source),
        groups=groups, cost=cost,
    )  # fmt: skip
    return parse_table(data, where, form)


def _keel_head(data: bytes, where: str) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]], bytes, int]:
    """Return the declared values of each attribute (none: a number), the roles, and the data with its first line."""
    domains: dict[str, tuple[str, ...]] = {}
    roles: dict[str, list[str]] = {}
    start = 0
    for number, raw in enumerate(data.split(b"\n"), 1):
        start += len(raw) + 1
        line = raw.decode(errors="replace").strip()
        keyword, rest = [*line.split(None, 1), "", ""][:2]
        keyword = keyword.lower()
        if keyword == "@data":
            if not domains:
                raise InputError(f"{where}: no @attribute line before @data")
            return domains, roles, data[start:], number + 1
        if keyword == "@attribute":
            name, domain = _attribute(rest, f"{where}, line {number}")
            unique([*domains, name], f"{where}, line {number}")
            domains[name] = domain
        elif keyword in ("@input", "@inputs", "@output", "@outputs"):
            roles[keyword[1:].rstrip("s")] = [name.strip() for name in rest.split(",")]
        elif line and keyword != "@relation" and not line.startswith("%"):
            raise InputError(f"{where}, line {number}: {line[:40]!r} is not a line of a KEEL header")
    raise InputError(f"{where}: no @data line; is this a KEEL file?")


def _attribute(text: str, where: str) -> tuple[str, tuple[str, ...]]:
    match = ATTRIBUTE.fullmatch(text)
    if match is None:
        raise InputError(
            f"{where}: {text[:40]!r} is not `name {{value, ...}}`, `name real [low, high]` or `name integer`"
        )
    domain = match["domain"]
    values = [value.strip() for value in domain[1:-1].split(",")] if domain.startswith("{") else []
    return match["name"].strip("'\""), tuple(values)
