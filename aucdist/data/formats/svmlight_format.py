"""The format `svmlight`: rows of ``label index:value index:value ...``, whose features have numbers and no names."""

from typing import TYPE_CHECKING, Any, ClassVar

from aucdist.data.formats.base import UNSHARDED
from aucdist.data.formats.lines import LineFormat
from aucdist.data.formats.part import FilePart
from aucdist.data.formats.source_fields import SourceFields
from aucdist.data.storage import files
from aucdist.data.storage.guard import check_fits
from aucdist.errors import InputError

if TYPE_CHECKING:
    from aucdist.data.dataset import Schema
    from aucdist.data.formats.base import Parsed
    from aucdist.data.formats.survey import Survey

DENSE_ABOVE = 0.5
"""Above this share of non-zero entries a row is read faster as a dense one, and takes hardly more memory."""
ALWAYS_WIDE, WIDTH_PER_VALUE = 2**20, 10
"""A file of one line could name feature 2 147 483 647. Features beyond the first are seldom rarer than this."""
BYTES_PER_FEATURE = 150
"""What name, weight and statistics of a feature take."""


class SvmlightFormat(LineFormat):
    """Files of svmlight and libsvm."""

    name = "svmlight"
    fields = UNSHARDED | {"n_features", "zero_based", "labels", "qid"}
    suffixes: ClassVar = {".svm": {}, ".svmlight": {}, ".libsvm": {}}

    def parse(self, data: bytes, source: SourceFields, part: FilePart, schema: "Schema | None") -> "Parsed":
        """Return the rows as CSR."""
        from aucdist.data.formats.svmlight import parse_svmlight

        return parse_svmlight(
            data, files.shown(part.url), n_features=len(schema.feature_names) if schema else source.n_features,
            zero_based=source.zero_based, topics=source.labels == "topics", qid=source.qid,
            dtype=source.dtype or "float64", first_line=part.line or 1,
        )  # fmt: skip

    def feature_names(self, source: SourceFields, survey: "Survey") -> tuple[str, ...]:
        """Return the numbers of the features, up to the largest that occurs or that the source states."""
        if survey.width == 0:
            raise InputError(f"{survey.where}: no row has a feature")
        if source.n_features is None and survey.width > max(ALWAYS_WIDE, WIDTH_PER_VALUE * survey.stored):
            raise InputError(
                f"{survey.where}: the largest feature is number {survey.width}, but only {survey.stored} values are not "
                f"zero: a model of so many weights would fill the memory. If it is meant, give n_features: {survey.width}"
            )
        check_fits((source.n_features or survey.width) * BYTES_PER_FEATURE, f"{survey.where}: names of all features")
        start = 0 if source.zero_based else 1
        return tuple(str(i) for i in range(start, start + (source.n_features or survey.width)))

    def is_sparse(self, survey: "Survey", n_features: int) -> bool:
        """Tell whether at most half of the entries are not zero."""
        return survey.stored <= DENSE_ABOVE * survey.rows * n_features

    def for_scoring(self, source: SourceFields, schema: "Schema") -> dict[str, Any]:
        """Refuse a model whose features have names."""
        start = 0 if source.zero_based else 1
        if schema.feature_names != tuple(str(i) for i in range(start, start + len(schema.feature_names))):
            raise InputError(
                f"{files.shown(str(source.source))}: the model's features have names ({schema.feature_names[0]}, ...), but "
                "those of svmlight files are numbers"
            )
        return {
            "qid": "ignore" if source.qid == "use" else source.qid,
            "labels": "numbers" if source.labels == "grades" else source.labels,
        }
