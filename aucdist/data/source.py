"""What a data set is: where its bytes lie, how to read them, and what must be found there."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from aucdist.data.classes import class_name
from aucdist.errors import InputError, unknown

Format = Literal["svmlight", "csv", "keel", "parquet", "embedded"]
Layout = Literal["auto", "dense", "csr"]
Separator = Literal[",", ";", "space", "tab"]
ClassName = str | int | float

TABLES = ("csv", "keel", "parquet")
# A key given for a format that has no use for it is refused: nobody should believe that it did something.
ONLY_FOR = {
    "label": TABLES,
    "categorical": TABLES,
    "header": ("csv",),
    "columns": ("csv",),
    "separator": ("csv",),
    "n_features": ("svmlight",),
    "zero_based": ("svmlight",),
}
# What changes the numbers that are read, and so belongs to the fingerprint of the data.
READING = ("format", "layout", "positive", *ONLY_FOR)


class Source(BaseModel):
    """A data set to read. It is the entry of the catalog, and what users write out for data of their own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str | list[str] = Field(
        description="File, folder, pattern or URL (file:// s3:// https://), or several of them that are one data set. "
        "Relative paths lie below AUCDIST_DATA. The name of a bundled set for the format `embedded`"
    )
    format: Format = Field(description="How the bytes are laid out")
    label: str | int | None = Field(
        None, description="Label column by name, or by position from 0 (-1 is the last). KEEL files name it themselves"
    )
    positive: ClassName | list[ClassName] = Field(
        "minority", description="Positive class, several of them, or `minority`: the rarest class. The rest is negative"
    )
    layout: Layout = Field(
        "auto",
        description="`auto`: dense, but CSR for svmlight files of which at most half of the entries are non-zero",
    )
    categorical: list[str | int] | Literal["auto"] = Field(
        [],
        description="Columns that become one 0/1 feature for each category. `auto`: those with a cell that is not a "
        "number. The nominal attributes of KEEL files always do",
    )
    header: bool = Field(True, description="csv: the first line holds the column names")
    columns: list[str] | None = Field(None, description="csv without a header: the column names")
    separator: Separator = Field(",", description="csv: what stands between cells; `space` is any run of blanks")
    n_features: int | None = Field(None, ge=1, description="svmlight: the width, where the file does not show it")
    zero_based: bool = Field(False, description="svmlight: the first feature is number 0 and not 1")
    sha256: str | None = Field(None, pattern="^[0-9a-f]{64}$", description="Checksum of the one file as it is stored")
    rows: int | None = Field(None, ge=1, description="Expected number of rows")
    features: int | None = Field(None, ge=1, description="Expected number of features, after one-hot encoding")
    classes: dict[str, int] | None = Field(None, description="Expected number of rows of each class")
    title: str | None = None
    origin: str | None = Field(None, description="Where the file was taken from")
    licence: str | None = None
    note: str | None = None

    @field_validator("classes", mode="before")
    @classmethod
    def _one_spelling(cls, classes: Any) -> Any:
        return {class_name(c): n for c, n in classes.items()} if isinstance(classes, dict) else classes

    @model_validator(mode="after")
    def _consistent(self) -> "Source":
        for key, formats in ONLY_FOR.items():
            if self.format not in formats and getattr(self, key) != Source.model_fields[key].default:
                raise InputError(f"`{key}` does not apply to format {self.format!r}, only to {', '.join(formats)}")
        if self.format in ("csv", "parquet") and self.label is None:
            raise InputError(f"format {self.format!r} needs `label`: the name or the position of the label column")
        if self.columns is not None and self.header:
            raise InputError("`columns` names the columns of a file without a header: give `header: false` with it")
        if self.sha256 is not None and not isinstance(self.source, str):
            raise InputError("`sha256` is the checksum of one file, but several sources are given")
        if self.source in ("", []) or self.positive == []:
            raise InputError("`source` and `positive` may not be empty")
        return self

    def reading(self) -> dict[str, Any]:
        """Return what decides how the bytes are read, in types of JSON."""
        return self.model_dump(mode="json", include=set(READING))


def parse_source(entry: Any, where: str) -> Source:
    """Make a `Source` from what a YAML file says.

    Parameters
    ----------
    entry : dict
        The keys of a source.
    where : str
        Names the place in the error, such as a file and an entry.

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
        return Source.model_validate(entry)
    except ValidationError as e:
        first = e.errors()[0]
        cause = first.get("ctx", {}).get("error", first["msg"])
        key = ".".join(str(part) for part in first["loc"][:1])
        raise InputError(f"{where}: {f'`{key}`: ' if key else ''}{cause}") from None
