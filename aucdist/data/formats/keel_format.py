"""The format `keel`: the ``.dat`` files of the KEEL repository, whose header declares attributes, inputs and outputs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aucdist.data.formats.base import OF_TABLES, FileFormat, refuse_shared_roles
from aucdist.data.formats.source_fields import SourceFields

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
        from aucdist.data.formats.delimited import parse_keel

        return parse_keel(data, where, source, schema)
