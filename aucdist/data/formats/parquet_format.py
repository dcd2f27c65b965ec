"""The format `parquet`: files of typed columns in row groups."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from aucdist.data.formats.base import OF_COLUMNS, TableFormat, whole_file
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files
from aucdist.data.storage.compression import unpacked

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed


class ParquetFormat(TableFormat):
    """Parquet files."""

    name = "parquet"
    fields = OF_COLUMNS | {"where"}
    suffixes: ClassVar = {".parquet": {}, ".pq": {}}
    needs_label = True

    def n_bytes(self, source: SourceFields) -> int:
        """Return the bytes of the row groups, uncompressed."""
        urls = [url for url in files.expand(source.source) if not files.is_web(url)]
        return sum(sum(sizes.values()) for sizes in _row_group_sizes(urls, source).values())

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Return ranges of row groups, but whole files where the source has a `sha256`."""
        if source.sha256 is not None:
            return super().split(source, n)
        return _ranges(_row_group_sizes(files.expand(source.source), source), n)

    def parse(
        self,
        data: bytes,
        where: str,
        source: SourceFields,
        schema: "Schema | None",
        *,
        columns: Sequence[str] = (),
        first_line: int = 1,
    ) -> "Parsed":
        """Return the columns."""
        from aucdist.data.formats.parquet import parse_parquet

        return parse_parquet(data, where, source, schema)

    def parse_file(self, data: bytes, url: str, source: SourceFields, schema: "Schema | None") -> "Parsed":
        """Return the columns of a file, and those that its folders stand for."""
        from aucdist.data.formats.hive import path_values
        from aucdist.data.formats.parquet import parse_parquet

        return parse_parquet(unpacked(data, url), files.shown(url), source, schema, path_values(url))

    def digest_of_path(self, url: str) -> str:
        """Return the columns that the folders of a file stand for, if there are any."""
        from aucdist.data.formats.hive import path_values

        values = path_values(url)
        return json.dumps(values) if values else ""

    def read_range(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> "tuple[Parsed, int]":
        """Return what is in some row groups."""
        from aucdist.data.formats.parquet import parse_row_groups

        assert part.stop is not None
        return parse_row_groups(part.url, source, schema, part.start, part.stop), 0


def _row_group_sizes(urls: Sequence[str], source: SourceFields) -> dict[str, dict[int, int]]:
    from aucdist.data.formats.parquet import row_group_sizes

    return {url: row_group_sizes(url, source) for url in urls}


def _ranges(sizes: Mapping[str, Mapping[int, int]], n: int) -> list[FilePart]:
    """Return ranges of row groups that follow each other, each of about an n-th of all bytes."""
    share = max(1, math.ceil(sum(sum(of_file.values()) for of_file in sizes.values()) / n))
    found: list[FilePart] = []
    in_part = 0
    for url, of_file in sizes.items():
        file = whole_file(url)
        for i, size in of_file.items():
            if found and (found[-1].url, found[-1].stop) == (url, i) and in_part + size <= share:
                found[-1] = replace(found[-1], stop=i + 1)
                in_part += size
            else:
                found.append(replace(file, start=i, stop=i + 1))
                in_part = size
    return found or [replace(whole_file(next(iter(sizes))), stop=0)]
