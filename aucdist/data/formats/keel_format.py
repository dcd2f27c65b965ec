"""The format `keel`: KEEL ``.dat`` files, and Weka's ``.arff``, whose headers declare attributes."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from aucdist.data.formats.base import OF_TABLES, FileFormat, FilePart, refuse_shared_roles
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.formats.text import pick, unique
from aucdist.data.storage import files
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.survey import Parsed

ATTRIBUTE = re.compile(
    r"""(?P<name>'[^']*'|"[^"]*"|[^\s{\[]+)\s*(?P<domain>\{.*\}|(?:real|integer|numeric|string|date)\b.*)""", re.I
)
VALUE = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|([^,]*))\s*(?:,|$)""")
COMMENT = re.compile(rb"(?m)^[ \t]*%.*$")
TEXT = "string"


class KeelFormat(FileFormat):
    """KEEL files, and ARFF files, which have no roles, but comments."""

    name = "keel"
    fields = OF_TABLES
    suffixes: ClassVar = {".dat": {}, ".arff": {}}

    def check(self, source: SourceFields) -> None:
        """Refuse a column that is to be two of the label, the groups and the costs."""
        refuse_shared_roles(source)

    def for_scoring(self, source: SourceFields, schema: "Schema") -> dict[str, Any]:
        """Read neither groups nor costs."""
        return {"groups": None, "cost_column": None}

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the columns: ``@attribute`` lines with types, ``@inputs``, ``@outputs``, ``@data``, then cells and commas.

        The categories of a nominal attribute are those that it declares, whether they occur or not, so that the parts of a
        partitioned data set are encoded alike. Without ``@inputs`` all other attributes are features; without
        ``@outputs`` the last attribute is the label.
        """
        from aucdist.data.formats.csv_format import CsvText, parse_cells
        from aucdist.data.formats.table_form import MISSING_CATEGORY, TableForm

        where = files.shown(part.url)
        domains, roles, data, first_line = _head(data, where)
        names = list(domains)
        outputs = roles.get("output") or names[-1:]
        if source.label is None and len(outputs) != 1:
            raise InputError(f"{where}: several outputs ({', '.join(outputs)}); name one of them with `label`")
        label = pick(names, outputs[0] if source.label is None else source.label, where, "label")
        inputs = roles.get("input") or [name for name in names if name not in outputs]
        if schema is not None:  # as of other tables, a model takes its columns, whatever else there is
            inputs = [name for name in schema.columns() if name in names]
        form = TableForm.of(source.model_copy(update={"label": label}), schema, names, where)
        apart = (label, form.groups, form.cost)
        features = tuple(pick(names, name, where, "@inputs") for name in inputs if name not in apart)
        texts = set(form.categorical)
        if schema is None:
            texts |= {name for name in features if domains[name]}
        more = (MISSING_CATEGORY,) if form.missing else ()
        allowed = {
            name: domain if name == label else (*domain, *more)
            for name, domain in domains.items()
            if domain and domain != (TEXT,)
        }
        if data.lstrip().startswith(b"{"):
            raise InputError(
                f"{where}, line {first_line}: rows of index and value in braces (sparse ARFF) are not read"
            )
        quote = "'" if b"'" in data and b'"' not in data else '"'
        lines = COMMENT.sub(b"", data) + (b"" if data.endswith(b"\n") else b"\n")
        return parse_cells(
            CsvText(lines, where, names, ",", quote, first_line=first_line),
            replace(
                form, features=features, categorical=texts & set(features), guess=False,
                allowed=allowed | dict(form.allowed),
            ),
        )  # fmt: skip


def _head(data: bytes, where: str) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]], bytes, int]:
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
    domain, name = match["domain"], match["name"].strip("'\"")
    if domain.startswith("{"):
        values = [(a or b or c).strip() for a, b, c in VALUE.findall(domain[1:-1].strip()) if a or b or c]
        return name, tuple(values)
    return name, (TEXT,) if domain.lower().startswith(("string", "date")) else ()
