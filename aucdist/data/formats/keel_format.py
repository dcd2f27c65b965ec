"""The format `keel`: the ``.dat`` files of the KEEL repository, whose header declares attributes, inputs and outputs."""

from typing import TYPE_CHECKING, Any, ClassVar

from aucdist.data.formats.base import OF_TABLES, FileFormat, refuse_shared_roles
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed


class KeelFormat(FileFormat):
    """KEEL files."""

    name = "keel"
    fields = OF_TABLES
    suffixes: ClassVar = {".dat": {}}

    def check(self, source: SourceFields) -> None:
        """Refuse a column that is to be two of the label, the groups and the costs."""
        refuse_shared_roles(source)

    def for_scoring(self, source: SourceFields, schema: "Schema") -> dict[str, Any]:
        """Read neither groups nor costs."""
        return {"groups": None, "cost_column": None}

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the columns."""
        from aucdist.data.formats.delimited import parse_keel

        return parse_keel(data, files.shown(part.url), source, schema)
