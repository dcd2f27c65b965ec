"""The format `parquet`: files of typed columns in row groups."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from aucdist.data.formats.base import OF_COLUMNS, FileFormat, TableFormat, version_of
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed


class ParquetFormat(TableFormat, FileFormat):
    """Parquet files."""

    name = "parquet"
    fields = OF_COLUMNS | {"where"}
    suffixes: ClassVar = {".parquet": {}, ".pq": {}}
    needs_label = True

    def n_bytes(self, source: SourceFields) -> int:
        """Return the bytes of the row groups, uncompressed."""
        local = [part for part in self.whole_files(source) if not files.is_web(part.url)]
        return sum(sum(sizes.values()) for sizes in _row_group_sizes(local, source).values())

    def whole_files(self, source: SourceFields) -> list[FilePart]:
        """Return each file as one part, which knows the columns of folders that hold texts."""
        from aucdist.data.formats.hive import text_columns

        urls = self.part_urls(source)
        texts = text_columns(urls)
        return [FilePart(url, folder_texts=texts) for url in urls]

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Return ranges of row groups, but whole files where the source has a `sha256`."""
        if source.sha256 is not None:
            return super().split(source, n)
        return _ranges(_row_group_sizes(self.whole_files(source), source), n)

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the columns."""
        from aucdist.data.formats.parquet import parse_parquet

        return parse_parquet(data, source, part, schema)

    def digest_of_path(self, url: str) -> str:
        """Return the columns that the folders of a file stand for, if there are any."""
        from aucdist.data.formats.hive import path_values

        values = path_values(url)
        return json.dumps(values) if values else ""

    def read_range(self, source: SourceFields, part: FilePart, schema: "Schema | None") -> "tuple[Parsed, int]":
        """Return what is in some row groups."""
        from aucdist.data.formats.parquet import parse_row_groups

        return parse_row_groups(source, part, schema), 0


def _row_group_sizes(parts: Sequence[FilePart], source: SourceFields) -> dict[FilePart, dict[int, int]]:
    from aucdist.data.formats.parquet import row_group_sizes

    return {part: row_group_sizes(part.url, source, part.folder_texts) for part in parts}


def _ranges(sizes: Mapping[FilePart, Mapping[int, int]], n: int) -> list[FilePart]:
    """Return ranges of row groups that follow each other, each of about an n-th of all bytes."""
    share = max(1, math.ceil(sum(sum(of_file.values()) for of_file in sizes.values()) / n))
    found: list[FilePart] = []
    in_part = 0
    for part, of_file in sizes.items():
        file = replace(part, version=version_of(part.url))
        for i, size in of_file.items():
            if found and (found[-1].url, found[-1].stop) == (part.url, i) and in_part + size <= share:
                found[-1] = replace(found[-1], stop=i + 1)
                in_part += size
            else:
                found.append(replace(file, start=i, stop=i + 1))
                in_part = size
    return found or [replace(file, stop=0)]
