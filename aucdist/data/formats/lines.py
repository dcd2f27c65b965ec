"""Text files of one row a line, which are split into ranges of bytes that start and end at line breaks."""

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from aucdist.data.formats.base import FileFormat, version_of
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files
from aucdist.data.storage.guard import BOM, is_packed
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed

WINDOW = 2**16  # bytes that are searched first for a line break; as many as needed after that
CHUNK = 2**24
FIRST = 2**11  # bytes that show a compressed file


class LineFormat(FileFormat):
    """A format of files that are split at line breaks.

    Files that are compressed or come from the web stay whole, as do those with a `sha256`, which needs all of the file. Little is
    read to split a file: its size, the header, and a few bytes around each edge.
    """

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Return ranges of files; fewer than `n` where lines are long, and more where there are more files."""
        urls = self.part_urls(source)
        if not any(_can_be_split(url, source) for url in urls):
            return super().split(source, n)
        stats = [files.stat(url) for url in urls]
        share = max(1, math.ceil(sum(stat.size for stat in stats) / n))
        return [
            part
            for url, stat in zip(urls, stats, strict=True)
            for part in (
                self._ranges(url, stat, share, source)
                if _can_be_split(url, source) and stat.size > share
                else [FilePart(url, version=version_of(url))]
            )
        ]

    def _ranges(self, url: str, stat: files.Stat, share: int, source: SourceFields) -> list[FilePart]:
        """Return ranges of one file, each from after a line break to after another one."""
        mark = len(BOM) if files.read_range(url, 0, len(BOM), stat) == BOM else 0
        start, columns, line = self.read_header(url, mark, stat, source)
        edges = [start]
        for wanted in range(start + share, stat.size, share):
            if wanted > edges[-1]:
                edges.append(after_line_break(url, wanted, stat))
        if edges[-1] < stat.size:
            edges.append(stat.size)
        ranges = [FilePart(url, a, b, columns, version=stat.etag) for a, b in itertools.pairwise(edges)]
        return [replace(ranges[0], line=line), *ranges[1:]] if ranges else [FilePart(url)]

    def read_header(
        self, url: str, start: int, stat: files.Stat, source: SourceFields
    ) -> tuple[int, tuple[str, ...], int]:
        """Return where the rows start, the columns, and the number of the first line of rows; by default there is no header."""
        return start, (), 1

    def read_range(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> "tuple[Parsed, int]":
        """Return what is in a range of a file, and its number of line breaks."""
        assert part.stop is not None
        data = files.read_range(part.url, part.start, part.stop, _version(part))
        try:
            parsed = self.parse(data, source, part, schema)
        except InputError:
            if part.line is None:  # once more, now that it is worth counting the lines before
                chunks = ((at, min(at + CHUNK, part.start)) for at in range(0, part.start, CHUNK))
                before = sum(files.read_range(part.url, *chunk, _version(part)).count(b"\n") for chunk in chunks)
                self.parse(data, source, replace(part, line=1 + before), schema)
            raise
        return parsed, data.count(b"\n")


def _can_be_split(url: str, source: SourceFields) -> bool:
    whole = source.encoding == "utf-16"  # whose line breaks are no bytes of their own
    if files.is_web(url) or source.sha256 is not None or whole or is_packed(url):
        return False
    return not is_packed(url, files.read_range(url, 0, min(files.stat(url).size, FIRST)))


def first_line_with_text(url: str, start: int, stat: files.Stat) -> bytes:
    """Return the bytes from `start` to the end of the first line that is not blank.

    Raises InputError if there is none.
    """
    head, stop = b"", start
    while head.isspace() or not head:
        if stop == stat.size:
            raise InputError(f"{files.shown(url)} is empty")
        stop = after_line_break(url, stop + 1, stat)
        head = files.read_range(url, start, stop, stat)
    return head


def after_line_break(url: str, position: int, stat: files.Stat) -> int:
    """Return the offset after the first line break at or after `position` less one, or the end of the file."""
    start, window = max(0, position - 1), WINDOW
    while start < stat.size:
        stop = min(start + window, stat.size)
        found = files.read_range(url, start, stop, stat).find(b"\n")
        if found >= 0:
            return start + found + 1
        start, window = stop, window * 4
    return stat.size


def _version(part: FilePart) -> files.Stat | None:
    return files.Stat(0, part.version) if part.version else None
