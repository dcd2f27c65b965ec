"""The keys of a source: what a YAML file may say about a data set in any format."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator, with_config
from typing_extensions import TypedDict

from aucdist.data.dataset import DatePart
from aucdist.data.labels import EACH, class_name
from aucdist.data.own_files import MORE_KEYS, PositiveCount, Sha256, pattern_of
from aucdist.data.storage.urls import FreeText, Location, shown
from aucdist.errors import Json, check_keys_known

AnySource = TypeVar("AnySource", bound="SourceFields")
Layout = Literal["auto", "dense", "csr"]
Separator = Literal[",", ";", "|", "space", "tab"]
TextEncoding = Literal["utf-8", "utf-16", "latin-1", "cp1252"]
Word = Annotated[
    str, Field(min_length=1, max_length=100, pattern=pattern_of("a text without blanks around it", r"^\S(.*\S)?$"))
]
Symbol = Annotated[
    str,
    Field(
        min_length=1,
        max_length=8,
        pattern=pattern_of("signs or letters, with no digit, plus or minus", r"^[^\s\d+-]([^\d]*[^\s\d])?$"),
    ),
]
Names = Annotated[list[str], Field(min_length=1)]
Text = Annotated[str, Field(min_length=1)]
"""A list with at least one name, and a text with at least one character."""
Dtype = Literal["float32", "float64"]
Natural = Annotated[int, Field(ge=0)]
ClassName = str | int | float
RowFilter = tuple[str, Literal["=", "!=", "<", "<=", ">", ">=", "in", "not in"], Any]

MAX_CATEGORIES = 10_000
"""A column with more categories is an identifier, and its 0/1 features would fill the memory."""
MAX_DETECTED = 1000
"""A column with more categories is an identifier, unless the source lists it under `categorical`."""
MIN_DISTINCT = 50
"""A column with fewer categories is never an identifier. With more, it is one if it has more than half as many as rows."""
MAX_HASHED = 2**20
"""The largest number of features of one hashed column. Their names alone take some hundred MB."""
MAX_FEATURES = 2**31 - 1
"""The largest number of features, because the kernels count features in 32 bits."""


FINGERPRINT = "it changes the numbers that are read, and so is part of the fingerprint of the data"
FINGERPRINT_IF_GIVEN = "the same, but it is newer: it counts where it is given, so that older fingerprints still hold"
SCORING = "it decides how the cells of any file with the features of a model are read: a model carries it"
"""The purpose of a key of a source besides reading the file. It is an annotation of the key's type."""

FROZEN_MODEL = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, defer_build=True)


class EachOf(BaseModel):
    """Some topics, each of which is fitted against the rest."""

    model_config = FROZEN_MODEL

    each: list[ClassName] = Field(min_length=2)
    """The topics."""


class SourceFields(BaseModel):
    """The keys of a source, each of the right type. `aucdist.data.sources.Source` checks their combinations."""

    model_config = FROZEN_MODEL

    source: Location | list[Location]
    """A file, folder, pattern or URL (file:// s3:// https://), or a list of them that make up one data set. Relative
    paths are looked up in the folder of the YAML file, in the current folder, and below AUCDIST_DATA. For the format
    `embedded` it is the name of a bundled set."""
    format: Annotated[str, FINGERPRINT, SCORING]
    """The format of the files."""
    label: Annotated[str | int | None, FINGERPRINT] = None
    """The label column: its name, or its position from 0 (-1 is the last). KEEL files name it themselves."""
    positive: Annotated[ClassName | list[ClassName] | EachOf, FINGERPRINT] = "minority"
    """The positive class, a list of them, or `minority` for the rarest class. All other classes are negative. `each`
    fits each of three or more classes, or of topics, against the rest; {each: [CCAT, GCAT]} does so for these topics.
    """
    layout: Annotated[Layout, FINGERPRINT, SCORING] = "auto"
    """How the rows are stored in memory. `auto` is dense, but CSR for svmlight files in which at most half of the
    entries are non-zero, and for tables with hashed columns."""
    categorical: Annotated[list[str | int] | Literal["auto"], FINGERPRINT] = []
    """The columns that become one 0/1 feature for each category. `auto` takes those with a cell that is not a number.
    The nominal attributes of KEEL files always become categories."""
    hashed: Annotated[dict[str | int, Annotated[int, Field(ge=1, le=MAX_HASHED)]], FINGERPRINT_IF_GIVEN] = {}
    """Columns with too many categories to list, and the number of 0/1 features of each. A hash of the category decides
    to which feature it belongs."""
    missing: Annotated[Literal["refuse", "keep"], FINGERPRINT_IF_GIVEN, SCORING] = "refuse"
    """What happens to missing values of features. With `keep`, a missing value in a text column is a category of
    its own, and `impute` says what happens to a missing number."""
    missing_values: Annotated[list[Word], FINGERPRINT_IF_GIVEN, SCORING] = []
    """Strings and numbers that mean a missing value of a feature, such as ['-', '-999'], in addition to `?` and to the
    strings that pandas treats as missing. This needs `missing: keep`."""
    encoding: Annotated[TextEncoding, FINGERPRINT_IF_GIVEN, SCORING] = "utf-8"
    """For csv: the encoding of the file. Files in utf-16 are read as a whole."""
    decimal: Annotated[Literal[".", ","], FINGERPRINT_IF_GIVEN, SCORING] = "."
    """For csv: the decimal separator."""
    thousands: Annotated[Literal[",", ".", "'", "space"] | None, FINGERPRINT_IF_GIVEN, SCORING] = None
    """For csv: the thousands separator, as in 1,234,567."""
    symbols: Annotated[list[Symbol], FINGERPRINT_IF_GIVEN, SCORING] = []
    """For csv: symbols before or after a number, such as [$, EUR, '%']. They do not change the number: 12.5% is
    12.5."""
    quote: Annotated[Literal["double", "single"], FINGERPRINT_IF_GIVEN, SCORING] = "double"
    """For csv: the quote character, which may enclose a cell."""
    skip_lines: Annotated[int, FINGERPRINT_IF_GIVEN, SCORING] = Field(0, ge=0, le=10_000)
    """For csv and excel: the number of lines before the header, or before the rows, that are not read."""
    header: Annotated[bool, FINGERPRINT, SCORING] = True
    """For csv: whether the first line has the column names."""
    columns: Annotated[list[str] | None, FINGERPRINT, SCORING] = None
    """For csv without a header: the column names."""
    separator: Annotated[Separator, FINGERPRINT, SCORING] = ","
    """For csv: the field separator. `space` is any number of spaces."""
    keep: Annotated[Names | None, FINGERPRINT_IF_GIVEN] = None
    """For tables: the columns that become features, in this order. By default all columns do."""
    drop: Annotated[Names | None, FINGERPRINT_IF_GIVEN] = None
    """For tables: columns that are not read, of all columns or of those in `keep`."""
    dates: Annotated[dict[str, Annotated[list[DatePart], Field(min_length=1)]], FINGERPRINT_IF_GIVEN] = {}
    """For tables: columns of dates, and the numbers that each becomes, such as {when: [year, month, weekday, hour,
    days]}. Monday is weekday 0, and `days` counts from 1970-01-01."""
    date_format: Annotated[Text | None, FINGERPRINT_IF_GIVEN, SCORING] = None
    """For tables: the format of dates in text columns, as in Python's strptime: '%d.%m.%Y'. The default is ISO 8601:
    2025-01-31, 2025-01-31 14:30."""
    unknown: Annotated[Literal["error", "ignore", "as-missing"], FINGERPRINT_IF_GIVEN, SCORING] = "error"
    """For tables: what happens to categories that the training data did not have. With `ignore`, the row has none of
    the categories of the column. With `as-missing`, the value counts as missing."""
    where: Annotated[list[RowFilter] | None, FINGERPRINT_IF_GIVEN] = Field(None, min_length=1)
    """For tables other than csv: conditions such as [year, ">=", 2020] that a row has to meet to be read. Row groups
    whose statistics show that no row meets them are not read."""
    query: Annotated[Text | None, FINGERPRINT_IF_GIVEN] = None
    """For sql: the query. It needs ORDER BY, so that rows keep their numbers from run to run."""
    sheet: Annotated[Text | None, FINGERPRINT_IF_GIVEN] = None
    """For excel: the name of a sheet. By default the first sheet is read."""
    version: Natural | list[Natural] | None = None
    """For delta and iceberg: the version of the table (for iceberg the number of a snapshot), or a list with that of
    each table. By default a command reads the versions that are the newest when it begins."""
    n_features: Annotated[int | None, FINGERPRINT] = Field(None, ge=1, le=MAX_FEATURES)
    """For svmlight: the number of features, if the file does not show it."""
    zero_based: Annotated[bool, FINGERPRINT, SCORING] = False
    """For svmlight: whether the first feature has the number 0 instead of 1."""
    labels: Annotated[Literal["numbers", "topics", "grades"], FINGERPRINT_IF_GIVEN, SCORING] = "numbers"
    """`grades`: the labels are numbers of relevance, and a larger number means more relevant. A pair is then any two
    rows (of one group) with different grades. For svmlight: `numbers` for one number in each row, or `topics` for none,
    one or several classes in each row, which are words or numbers with commas between them. A row is positive if one of
    its topics is in `positive`."""
    qid: Annotated[Literal["refuse", "ignore", "use"], FINGERPRINT_IF_GIVEN, SCORING] = "refuse"
    """For svmlight: what happens to query ids. With `use`, pairs are rows of one query."""
    groups: Annotated[str | int | None, FINGERPRINT_IF_GIVEN] = None
    """For tables and keel: the column that says which rows belong together, such as a user or a query, by name or by
    position. Pairs are then rows of one group, a test fraction takes whole groups, and the column is not a feature."""
    cost_column: Annotated[str | int | None, FINGERPRINT_IF_GIVEN] = None
    """For tables and keel: the column that says what a wrong decision on each row costs, such as the amount of a fraud,
    by name or by position. Its values are numbers of at least 0. `operating_point` may use it. The column is not a
    feature unless `keep` names it."""
    dtype: Annotated[Dtype | None, FINGERPRINT_IF_GIVEN] = None
    """The type of the values. By default it is float64, or float32 if all numbers of a table are float32."""
    sha256: Sha256 | None = None
    """The checksum of the file as it is stored. It is for a source of one file."""
    rows: PositiveCount | None = None
    """The expected number of rows."""
    features: PositiveCount | None = None
    """The expected number of features, after one-hot encoding."""
    classes: dict[str, int] | None = None
    """The expected number of rows of each class."""
    title: FreeText | None = None
    """A few words that say what the rows are. They are only shown."""
    origin: FreeText | None = None
    """Where the file was taken from."""
    licence: FreeText | None = None
    """The licence of the file. It is only shown."""
    note: FreeText | None = None
    """What a user of the data should know. It is only shown."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, content: Any) -> Any:
        check_keys_known(content, cls.model_fields)
        return content

    @field_validator("where")
    @classmethod
    def _operands(cls, where: list[RowFilter] | None) -> list[RowFilter] | None:
        for column, operator, operand in where or ():
            if (operator in ("in", "not in")) != isinstance(operand, list) or operand == []:
                needed = "a list of values" if operator in ("in", "not in") else "one value"
                raise ValueError(
                    f"[{column}, {operator}, {str(operand)[:80]}]: the value after {operator!r} must be {needed}"
                )
        return where

    @field_validator("missing_values", mode="before")
    @classmethod
    def _as_texts(cls, words: Any) -> Any:
        if not isinstance(words, list):
            return [] if words is None else words
        return [str(w) if isinstance(w, int | float) and not isinstance(w, bool) else w for w in words]

    @field_validator("classes", mode="before")
    @classmethod
    def _one_spelling(cls, classes: Any) -> Any:
        return {class_name(c): n for c, n in classes.items()} if isinstance(classes, dict) else classes

    @property
    def of_each(self) -> bool:
        """Whether each class is fitted against the rest."""
        return self.positive == EACH or isinstance(self.positive, EachOf)

    @property
    def is_sharded(self) -> bool:
        """Whether the rows are stored as blocks, which only `aucdist.data.shards` reads."""
        return self.format == "shards"

    @property
    def display_name(self) -> str:
        """The name of the source in messages: its files, without the secrets of URLs."""
        return shown(str(self.source))

    def urls(self) -> list[str]:
        """Return the files, folders, patterns and URLs as a list."""
        return [self.source] if isinstance(self.source, str) else self.source

    def named_columns(self) -> set[str]:
        """Return the columns that the keys name, except for those of `where`."""
        columns = [
            self.label,
            self.groups,
            self.cost_column,
            *(self.keep or ()),
            *(self.drop or ()),
            *self.hashed,
            *self.dates,
        ]
        columns += () if self.categorical == "auto" else self.categorical
        return {column for column in columns if isinstance(column, str)}

    def keys_for_fingerprint(self) -> Json:
        """Return the keys that determine how the bytes are read, as JSON values."""
        newer = self.model_dump(mode="json", include=self.keys_of_use(FINGERPRINT_IF_GIVEN), exclude_defaults=True)
        return self.model_dump(mode="json", include=self.keys_of_use(FINGERPRINT)) | newer

    def keys_for_scoring(self) -> Json:
        """Return the keys that say how other files with the same features are read, as JSON values."""
        if self.format in ("shards", "embedded"):
            return {}
        return self.model_dump(mode="json", include=self.keys_of_use(SCORING), exclude_defaults=True)

    @classmethod
    def keys_of_use(cls, use: str) -> set[str]:
        """Return the names of the keys with this use."""
        return {name for name, field in SourceFields.model_fields.items() if use in field.metadata}


if TYPE_CHECKING:
    ReaderOptions = Json
else:
    _fields = SourceFields.model_fields.items()
    _types = {
        name: Annotated[field.annotation, *field.metadata] for name, field in _fields if SCORING in field.metadata
    }
    ReaderOptions = with_config(MORE_KEYS)(TypedDict("ReaderOptions", _types, total=False))
    """What `SourceFields.keys_for_scoring` returns, in a file of a model."""
