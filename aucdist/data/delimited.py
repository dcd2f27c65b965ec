"""CSV files and KEEL ``.dat`` files: what their headers say, and the lines below them."""

import re
from collections.abc import Mapping

from aucdist.data.source import Source
from aucdist.data.tables import BLANKS, Table, TableForm, first_row, infer_texts, parse_table, pick, unique
from aucdist.errors import InputError

SEPARATORS = {"space": BLANKS, "tab": "\t"}
ATTRIBUTE = re.compile(
    r"""(?P<name>'[^']*'|"[^"]*"|[^\s{\[]+)\s*(?P<domain>\{.*\}|(?:real|integer|numeric)\b.*)""", re.I
)


def parse_csv(data: bytes, where: str, source: Source, known: Mapping[str, tuple[str, ...]] | None) -> Table:
    """Read a CSV file.

    Parameters
    ----------
    data : bytes
    where : str
        Names the file in errors.
    source : Source
    known : mapping or None
        The categories of the training data, for a file that must be encoded like it.

    Raises
    ------
    InputError
        If the header or a cell is wrong, naming line and column.
    """
    form = TableForm((), (), SEPARATORS.get(source.separator, source.separator))
    names, data, first_line = _head(data, where, source, form)
    label = pick(names, source.label, where, "label")
    if known is not None:
        texts = set(known) & set(names)
    elif source.categorical == "auto":
        texts = infer_texts(data, where, TableForm(names, (), form.separator, first_line))
    else:
        texts = {pick(names, column, where, "categorical") for column in source.categorical}
    texts.discard(label)
    form = TableForm(names, texts | {label}, form.separator, first_line, known or {})
    numbers, columns = parse_table(data, where, form)
    features = tuple(name for name in names if name != label)
    found = {name: tuple(columns[name].categories) for name in features if name in texts}
    return Table(numbers, columns, label, features, found if known is None else dict(known))


def _head(data: bytes, where: str, source: Source, form: TableForm) -> tuple[list[str], bytes, int]:
    """Return the column names, the lines below the header, and the number of the first of them."""
    line, cells, end = first_row(data, where, form)
    if source.header:
        return unique([cell.strip() for cell in cells], where), data[end:], line + 1
    return unique(source.columns or [f"x{i}" for i in range(1, len(cells) + 1)], where), data, 1


def parse_keel(data: bytes, where: str, source: Source, known: Mapping[str, tuple[str, ...]] | None) -> Table:
    """Read a KEEL file: ``@attribute`` lines with types, ``@inputs``, ``@outputs``, ``@data``, then cells and commas.

    The categories of a nominal attribute are those that it declares, whether they occur or not, so that the parts of a
    partitioned data set are encoded alike. Without ``@inputs`` all other attributes are features; without
    ``@outputs`` the last attribute is the label. Parameters and errors as `parse_csv`.
    """
    domains, roles, data, first_line = _keel_head(data, where)
    names = list(domains)
    outputs = roles.get("output") or names[-1:]
    if source.label is None and len(outputs) != 1:
        raise InputError(f"{where}: several outputs ({', '.join(outputs)}); name one of them with `label`")
    label = pick(names, outputs[0] if source.label is None else source.label, where, "label")
    inputs = roles.get("input") or [name for name in names if name not in outputs]
    features = tuple(pick(names, name, where, "@inputs") for name in inputs if name != label)
    added = [] if source.categorical == "auto" else source.categorical
    texts = {pick(names, column, where, "categorical") for column in added} | {n for n in names if domains[n]}
    if known is not None:
        texts = set(known) & set(names)
    allowed = {name: domain for name, domain in domains.items() if domain} | dict(known or {})
    numbers, columns = parse_table(data, where, TableForm(names, texts | {label}, ",", first_line, allowed))
    found = {name: tuple(sorted(domains[name] or columns[name].categories)) for name in features if name in texts}
    return Table(numbers, columns, label, features, found if known is None else dict(known))


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


def _attribute(text: str, place: str) -> tuple[str, tuple[str, ...]]:
    match = ATTRIBUTE.fullmatch(text)
    if match is None:
        raise InputError(
            f"{place}: {text[:40]!r} is not `name {{value, ...}}`, `name real [low, high]` or `name integer`"
        )
    domain = match["domain"]
    values = [value.strip() for value in domain[1:-1].split(",")] if domain.startswith("{") else []
    return match["name"].strip("'\""), tuple(values)
