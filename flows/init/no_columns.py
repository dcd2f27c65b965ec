"""Looks at files that have no columns to choose from: svmlight, whose features are numbers, and KEEL, whose header names all."""

import re
from dataclasses import dataclass

from aucdist.data.formats.base import FilePart
from aucdist.data.formats.registry import FORMATS
from aucdist.data.formats.survey import Survey, survey_of
from aucdist.data.sources.source import Source
from aucdist.data.storage import files
from aucdist.data.storage.guard import unpacked
from flows.init.read import head_of

SVMLIGHT_ROW = re.compile(rb"[+-]?\d[\d.eE+-]*(\s+(qid:\d+\s+)?\d+:[^\s:]+)+\s*(#.*)?")


@dataclass(frozen=True, eq=False)
class RowsFound:
    """What the first rows of a file hold.

    `survey`: rows, classes, features and missing values.
    `sparse`: whether rows become CSR.
    """

    survey: Survey
    n_features: int
    sparse: bool
    whole: bool

    def comment(self) -> str:
        """Return features and density, or kinds of columns, in words."""
        found = self.survey
        if found.width:
            share = found.stored / max(1, found.rows * found.width)
            return f"{found.width:,} features, {share:.2%} of their values are not 0: rows are {self.layout}"
        return f"{len(found.columns):,} columns, {len(found.categories):,} of texts: {self.n_features:,} features"

    @property
    def layout(self) -> str:
        """Sparse or dense."""
        return "sparse" if self.sparse else "dense"


def is_svmlight(data: str) -> bool:
    """Tell whether the first row of a file looks like one of svmlight: a number, and pairs ``index:value``.

    Raises InputError if the file cannot be read.
    """
    head, _ = head_of(data)
    lines = (line.strip() for line in head[: 2**20].splitlines())
    first = next((line for line in lines if line and not line.startswith(b"#")), b"")
    return SVMLIGHT_ROW.fullmatch(first) is not None


def look_at(source: Source) -> RowsFound:
    """Return what the first rows of an svmlight or KEEL file hold.

    Raises InputError if the file cannot be read.
    """
    urls, of = files.expand(source.source), FORMATS[source.format]
    where = files.shown(urls[0])
    if source.format == "svmlight":
        data, whole = head_of(urls[0])
    else:  # its header is needed, and its files are small
        data, whole = unpacked(files.read_bytes(urls[0]), urls[0]), True

    def survey(read: Source) -> Survey:
        return survey_of(of.parse(data, read, FilePart(urls[0]), None), where, 0)  # type: ignore[attr-defined]  # both are of files

    if source.format == "keel":
        found = survey(source.model_copy(update={"missing": "keep"}))
        found = found if found.missing else survey(source)
    else:
        found = survey(source)
    n_features = len(of.feature_names(source, found))
    return RowsFound(found, n_features, of.is_sparse(found, n_features), whole and len(urls) == 1)
