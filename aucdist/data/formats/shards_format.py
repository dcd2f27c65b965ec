"""The format `shards`: blocks that `aucdist shard` wrote, which are read one at a time by `aucdist.data.shards`."""

from typing import TYPE_CHECKING, Any, NoReturn

from aucdist.data.formats.base import Format, are_local, described
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema


class ShardsFormat(Format):
    """Sharded data sets."""

    name = "shards"
    is_sharded = True

    def check(self, source: SourceFields) -> None:
        """Refuse several sources."""
        if not isinstance(source.source, str):
            raise InputError("format 'shards' takes one folder")

    def is_present(self, source: SourceFields) -> bool:
        """Tell whether the folder is local and exists."""
        return are_local(source)

    def describe_files(self, source: SourceFields) -> list[dict[str, Any]]:
        """Return URL, size and ETag of each file of the folder."""
        return described(source)

    def n_bytes(self, source: SourceFields) -> int:
        """Refuse."""
        _refuse()

    def split(self, source: SourceFields, n: int) -> list[FilePart]:
        """Refuse."""
        _refuse()

    def read_part(
        self, source: SourceFields, part: FilePart, schema: "Schema | None", digests: list[str] | None = None
    ) -> NoReturn:
        """Refuse."""
        _refuse()


def _refuse() -> NoReturn:
    raise InputError("shards are blocks already: read them with aucdist.data.shards.reading.open_reader")
