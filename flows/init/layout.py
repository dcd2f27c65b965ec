"""How the lines of a text file are written: encoding, lines before the header, what separates and what encloses cells."""

import re
from collections import Counter
from collections.abc import Sequence

from aucdist.data.formats.csv_format import QUOTES, SEPARATORS
from aucdist.data.formats.text import BLANKS, as_utf8, first_row, found_encoding
from aucdist.data.sources import Source
from aucdist.errors import InputError

LINES, BYTES = 50, 2**18
"""So many lines, of so many bytes, are looked at."""
MOST_SKIPPED = 30
CANDIDATES = (",", ";", "tab", "|", "space")
COMMA_IN_NUMBER = re.compile(r"[+-]?\d+,\d+")


def with_layout(source: Source, data: bytes, where: str) -> tuple[Source, bytes]:
    """Return a source with what it leaves open decided, and the bytes as UTF-8.

    `source`: of a CSV file. Keys that it gives are not looked for.
    `data`: the first lines of the file.
    Raises InputError if the bytes are no text of the encoding.
    """
    if "encoding" not in source.model_fields_set:
        source = _with(source, encoding=found_encoding(data))
    data = as_utf8(data, where, source)
    head = data[: max(data.find(b"\n"), data.rfind(b"\n", 0, BYTES))] if len(data) > BYTES else data
    lines = head.split(b"\n", LINES + MOST_SKIPPED)[: LINES + MOST_SKIPPED]
    if "quote" not in source.model_fields_set and _has_single_quotes(lines):
        source = _with(source, quote="single")
    asked = (source.separator,) if "separator" in source.model_fields_set else CANDIDATES
    best = max((_shape(lines, separator, source, where) for separator in asked), key=lambda shape: shape[0])
    (_, _, separator, skipped) = best
    if "separator" not in source.model_fields_set:
        source = _with(source, separator=separator)
    if "skip_lines" not in source.model_fields_set and skipped:
        source = _with(source, skip_lines=skipped)
    return source, data


def found_layout(given: Source, found: Source) -> list[str]:
    """Return what was found of the layout of a file, in words, but for separators, which are common."""
    said = {
        "encoding": f"It is written in {found.encoding}.",
        "quote": "Its cells are enclosed in single quotes.",
        "skip_lines": f"Its first {found.skip_lines} lines are no rows and are passed over (skip_lines).",
    }
    return [text for key, text in said.items() if getattr(given, key) != getattr(found, key)]


def _with(source: Source, **keys: object) -> Source:
    """Return the source with other keys; those that stay as they are by default do not count as given."""
    changed = {key: value for key, value in keys.items() if getattr(source, key) != value}
    return source.model_copy(update=changed) if changed else source


def _has_single_quotes(lines: Sequence[bytes]) -> bool:
    """Tell whether cells are enclosed in single quotes, and none in double ones."""
    filled = [line for line in lines if line.strip()]
    cell = rb"(?:^|[,;|\t])\s*%s[^'\"\n]*%s\s*(?=[,;|\t\r]|$)"
    single = sum(re.search(cell % (b"'", b"'"), line) is not None for line in filled)
    double = any(re.search(cell % (b'"', b'"'), line) for line in filled)
    return not double and single > 0.5 * len(filled)


def _shape(lines: Sequence[bytes], separator: str, source: Source, where: str) -> tuple[float, int, str, int]:
    """Return how well a separator fits the lines, the number of columns, the separator, and the lines before the first row."""
    skipped = source.skip_lines
    rows = [_cells(line, separator, source, where) for line in lines[skipped:]]
    counts = [len(cells) for cells in rows]
    usual = Counter(count for count in counts if count).most_common(1)
    if not usual or usual[0][0] < 2:
        return (0.0, 1, separator, 0)
    width, often = usual[0]
    share = often / max(1, sum(count > 0 for count in counts))
    first = next(i for i, count in enumerate(counts) if count == width)
    before = [count for count in counts[:first] if count]
    preamble = "skip_lines" not in source.model_fields_set and before and max(before) < width - 1
    above = [line.strip() for line in lines[skipped : skipped + first]]
    if any(above) and all(not line or line.startswith((b"#", b"%", b"//", b";;")) for line in above):  # comments
        preamble = True
    # A comma that is found in numbers, beside a separator that fits as well, is a decimal one.
    decimal = separator != "," and any(COMMA_IN_NUMBER.fullmatch(cell.strip()) for row in rows for cell in row)
    fit = (2.0 if share > 0.9 else share) * (100.0 if decimal and share > 0.9 else 1.0)
    fit *= 0.5 if separator == "space" else 1.0
    return (fit * (1.0 + 0.001 * width) if width > 1 else 0.0, width, separator, first if preamble else 0)


def _cells(line: bytes, separator: str, source: Source, where: str) -> list[str]:
    """Return the cells of a line; none where it is blank or cannot be cut."""
    if not line.strip():
        return []
    sign = SEPARATORS.get(separator, separator)
    try:
        return first_row(line, where, sign if sign == BLANKS else str(sign), quote=QUOTES[source.quote])[1]
    except InputError:
        return []
