"""A data set to read: where its bytes lie, how to read them, and what must be found there."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from aucdist.data.formats.base import Format
from aucdist.data.formats.registry import COMMON_FIELDS, FORMATS, formats_with
from aucdist.data.formats.source_fields import ClassName, Dtype, SourceFields
from aucdist.errors import InputError, unknown

__all__ = ["UNLABELLED", "ClassName", "Dtype", "Source", "parse_source"]

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[tuple(FORMATS)]

UNLABELLED = {"labelled": False}
"""The context of pydantic in which a source of rows that are only scored needs no label."""


class Source(SourceFields):
    """A data set to read. It is the entry of the catalog, and what users write out for data of their own."""

    format: FormatName = Field(description="Format of the files")

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> "Source":
        of = self.format_of()
        for key, field in Source.model_fields.items():
            if key not in of.fields | COMMON_FIELDS and getattr(self, key) != field.default:
                # Nobody should believe that the key did something.
                allowed = ", ".join(formats_with(key))
                raise InputError(f"`{key}` does not apply to format {self.format!r}, only to {allowed}")
        labelled = (info.context or {}).get("labelled", True)  # a model knows which classes are positive
        if of.needs_label and self.label is None and labelled:
            raise InputError(f"format {self.format!r} needs `label`: the name or the position of the label column")
        of.check(self)
        if self.labels == "topics" and self.positive == "minority" and labelled:
            raise InputError("`labels: topics` needs `positive`: the class, or classes, that make a row positive")
        if self.sha256 is not None and not isinstance(self.source, str):
            raise InputError("`sha256` is the checksum of one file, but several sources are given")
        if self.source in ("", []) or self.positive == []:
            raise InputError("`source` and `positive` may not be empty")
        return self

    def format_of(self) -> Format:
        """Return the format: what it can do, and how its files are read."""
        return FORMATS[self.format]


def parse_source(entry: Any, where: str, *, labelled: bool = True) -> Source:
    """Make a `Source` from an entry of a YAML file.

    Parameters
    ----------
    entry : dict
        The keys of a source.
    where : str
        Names the entry in errors, such as its file and its name.
    labelled : bool, default=True
        False for rows that are only scored, which need no label.

    Raises
    ------
    InputError
        If a key is unknown, missing or of the wrong type, or if keys do not go together.
    """
    if not isinstance(entry, dict):
        raise InputError(f"{where}: keys with values are expected, not {str(entry)[:80]!r}")
    for key in entry:
        if key not in Source.model_fields:
            raise InputError(f"{where}: {unknown('key', key, Source.model_fields)}")
    try:
        return Source.model_validate(entry, context=None if labelled else UNLABELLED)
    except ValidationError as e:
        first = e.errors()[0]
        cause = first.get("ctx", {}).get("error", first["msg"])
        key = ".".join(str(part) for part in first["loc"][:1])
        raise InputError(f"{where}: {f'`{key}`: ' if key else ''}{cause}") from None
