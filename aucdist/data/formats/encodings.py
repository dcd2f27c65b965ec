"""Text files in other encodings than UTF-8."""

import codecs

from aucdist.data.formats.source_fields import SourceFields
from aucdist.errors import InputError

MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def as_utf8(data: bytes, where: str, source: SourceFields, first_line: int = 1) -> bytes:
    """Return text as UTF-8, whatever the encoding that a source states.

    `data`: a file, or whole lines of one.
    `first_line`: the number of the first line, for errors.
    Raises InputError if bytes are none of that encoding, naming the line; or if they are UTF-8, and something else is
        stated.
    """
    encoding: str = source.encoding
    if encoding == "utf-8":
        return data
    if encoding == "utf-16":
        encoding = MARKS.get(data[:2]) or ("utf-16-be" if data[:1] == b"\0" else "utf-16-le")
    elif not data.isascii() and is_utf8(data):
        raise InputError(f"{where} is UTF-8 text, and `encoding` says {encoding}: leave it out (--set encoding=utf-8)")
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as e:
        if not isinstance(e, UnicodeDecodeError):  # half a pair of UTF-16, which encodes as nothing
            raise InputError(f"{where} is not {source.encoding} text: {e}") from None
        line = first_line + data.count(b"\n", 0, e.start)
        raise InputError(
            f"{where}, line {line}: not {source.encoding} text (byte {data[e.start]:#x}); `encoding` takes utf-8, utf-16, "
            "latin-1 and cp1252"
        ) from None


def is_utf8(data: bytes) -> bool:
    """Tell whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def found_encoding(head: bytes) -> str:
    """Return the encoding that the first lines of a file seem to have, in the words of a source."""
    if head[:2] in MARKS:
        return "utf-16"
    if is_utf8(head):
        pairs = head[: 2**12]
        zeros = max(pairs[0::2].count(0), pairs[1::2].count(0))
        return "utf-16" if zeros > len(pairs) // 4 else "utf-8"
    if any(0x80 <= byte <= 0x9F for byte in set(head)):
        try:
            head.decode("cp1252")
        except UnicodeDecodeError:
            return "latin-1"
        return "cp1252"
    return "latin-1"
