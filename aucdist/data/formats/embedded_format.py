"""The format `embedded`: real data sets that come with scikit-learn, so that no file and no network is needed."""

from typing import TYPE_CHECKING, Any

from aucdist.data.formats.base import UNSHARDED, Format
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed


class EmbeddedFormat(Format):
    """Bundled data sets, by their names."""

    name = "embedded"
    fields = UNSHARDED

    def describe_files(self, source: SourceFields) -> list[dict[str, Any]]:
        """Return the name of the data set as the only URL."""
        return [{"url": str(source.source)}]

    def read_part(
        self, source: SourceFields, part: FilePart, schema: "Schema | None", digests: list[str] | None = None
    ) -> "tuple[Parsed, int]":
        """Return all rows."""
        from aucdist.data.formats.embedded import load_embedded

        table, digest = load_embedded(source.source)
        if digests is not None:
            digests.append(digest)
        return table, 0
