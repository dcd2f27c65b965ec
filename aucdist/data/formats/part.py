"""A part of a data set: a file, or a range of one."""

from dataclasses import dataclass
from typing import ClassVar

from aucdist.data.checked import CHECKED, Count


@dataclass(frozen=True)
class FilePart:
    """A file, or the bytes from `start` to `stop` of one, which are whole lines; of a Parquet file, its row groups.

    `stop`: None: the whole file, which may be compressed and have a header.
    `columns`: for a range of a CSV file the names of its columns.
    `row` and `line`: the number of its first row in the data set (from 0) and of its first line in the file (from 1),
        once known.
    `folder_texts`: columns that folders stand for (`aucdist.data.formats.hive`) and that hold a text in some folder of
        the data set.
    `version`: identifies this version of the file (`aucdist.data.storage.files.Stat`); empty for one of the web.
    """

    __pydantic_config__: ClassVar = CHECKED

    url: str
    start: Count = 0
    stop: Count | None = None
    columns: tuple[str, ...] = ()
    row: Count | None = None
    line: Count | None = None
    folder_texts: tuple[str, ...] = ()
    version: str = ""
