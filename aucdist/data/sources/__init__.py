"""Sources, which say where the files of a data set are and how they are read, and the catalog of data sets with a name.

The catalog, ``configs/data/*.yaml``, has the sources of data sets by their names. `fetch` downloads a data set to the folder
where it is looked up.
"""

import functools
import lzma
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import yaml
from pydantic import ValidationError, ValidationInfo, model_validator

from aucdist.data.dataset import Schema
from aucdist.data.formats.base import Format
from aucdist.data.formats.registry import COMMON_FIELDS, FORMATS
from aucdist.data.formats.source_fields import ClassName, Dtype, SourceFields
from aucdist.data.own_files import UNLABELLED, first_fault
from aucdist.data.storage import files
from aucdist.data.storage.guard import read_configuration, unpacked
from aucdist.data.storage.urls import data_root, is_relative
from aucdist.errors import InputError, as_input_error, unknown

__all__ = ["ClassName", "Dtype", "Source", "parse_source"]

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[tuple(FORMATS)]

GITHUB = "https://github.com"
ORIGIN = re.compile(r"github:([^@:]+)@([0-9a-f]+):(.+)")
"""The repository, commit and path in an ``origin``."""


class Source(SourceFields):
    """A data set to read: an entry of the catalog, or the description of a user's own data."""

    format: FormatName
    """Format of the files"""

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> "Source":
        file_format = self.format_of()
        for key, field in Source.model_fields.items():
            if key not in file_format.fields | COMMON_FIELDS and getattr(self, key) != field.default:
                # A key without any effect is an error.
                formats = ", ".join(name for name, other in FORMATS.items() if key in other.fields)
                raise InputError(
                    f"`{key}` does not apply to format {self.format!r}, only to {formats}: leave `{key}` out"
                )
        # For scoring, the model knows which classes are positive.
        labelled = (info.context or {}).get("labelled", True)
        if file_format.needs_label and self.label is None and labelled:
            raise InputError(
                f"format {self.format!r} needs `label`: the name or the position of the label column, as in --set label=COLUMN"
            )
        file_format.check()
        if self.labels == "topics" and self.positive == "minority" and labelled:
            raise InputError("`labels: topics` needs `positive`: the class, or classes, that make a row positive")
        of_one = file_format.of_one if self.sha256 is None else "`sha256` is the checksum of one file"
        if of_one and not isinstance(self.source, str):
            raise InputError(f"{of_one}, but `source` is a list: give it one value")
        if isinstance(self.version, list) and len(self.version) != len(self.urls()):
            raise InputError("`version` and `source` are lists of different lengths: give each table one version")
        if self.source in ("", []) or self.positive == []:
            raise InputError("`source` and `positive` may not be empty: give a value, or leave the key out")
        return self

    def format_of(self, schema: Schema | None = None) -> Format:
        """Return the format object that reads the files.

        Parameters
        ----------
        schema : Schema, optional
            The schema of the training data, if the rows are to be encoded like them.

        Returns
        -------
        Format
        """
        return FORMATS[self.format](self, schema)

    def pinned(self) -> "Source":
        """Return the source with the present versions of its tables, so that later reads see the same rows.

        Returns
        -------
        Source
        """
        return self.model_copy(update=self.format_of().pinned())


def parse_source(entry: Any, where: str, *, labelled: bool = True) -> Source:
    """Make a `Source` from an entry of a YAML file.

    Parameters
    ----------
    entry : dict
        The keys of a source.
    where : str
        The name of the entry in error messages, such as its file and its name.
    labelled : bool, default=True
        False for rows that are only scored, which need no label.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        If a key is unknown, missing or of the wrong type, or if keys contradict each other.
    """
    if not isinstance(entry, dict):
        raise InputError(f"{where}: an entry must have lines of the form `key: value`; got {str(entry)[:80]!r}")
    try:
        return Source.model_validate(entry, context=None if labelled else UNLABELLED)
    except ValidationError as e:
        raise InputError(f"{where}: {first_fault(e)}") from None


# libyaml's loader is ten times as fast, but is not installed everywhere.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def catalog_folder() -> Path:
    """Return the folder of the catalog. It is beside the package in a checkout, and inside the package after an installation."""
    package = Path(__file__).resolve().parents[2]
    inside = package / "configs/data"
    return inside if inside.is_dir() else package.parent / "configs/data"


@functools.cache
def catalog(folder: Path | None = None) -> dict[str, Source]:
    """Return the sources of all data sets in the catalog, by name.

    Parameters
    ----------
    folder : Path, optional
        The folder of YAML files. By default, it is that of the project.

    Raises
    ------
    InputError
        If the folder has no catalog, an entry is wrong, or two entries have the same name.
    """
    folder = catalog_folder() if folder is None else folder
    sources: dict[str, Source] = {}
    for path in sorted(folder.glob("*.yaml")):
        with as_input_error(f"{path} is not valid YAML", yaml.YAMLError, say=str):
            content = yaml.load(read_configuration(path), LOADER)
        if not isinstance(content, dict):
            raise InputError(
                f"{path}: write names of data sets with their sources, as in `clicks: {{source: clicks.csv, label: clicked}}`"
            )
        for name, entry in content.items():
            if str(name) in sources:
                raise InputError(f"{path}: {name!r} is in the catalog twice: rename one of the two")
            sources[str(name)] = parse_source(entry, f"{path}, {name}")
    if not sources:
        raise InputError(f"there is no data catalog in {folder}: add a YAML file of data sets")
    return sources


def find_source(name: str) -> Source:
    """Return the source of a data set of the catalog.

    Raises
    ------
    InputError
        If there is no data set of this name. The message suggests the most similar name.
    """
    sources = catalog()
    if name not in sources:
        raise unknown("data set", name, sources)
    return sources[name]


def is_present(source: Source) -> bool:
    """Return whether a data set can be read without a network, because it is bundled, or its files are local and exist."""
    return source.format_of().is_present()


def check_installed(names: Iterable[str]) -> None:
    """Raise an InputError if files of these data sets of the catalog are missing on this machine.

    Files in object stores and on the web are not checked. The message says where each file comes from and where it belongs.
    """
    lines = []
    for name in dict.fromkeys(names):
        source = find_source(name)
        if absent := [url for url in source.urls() if is_relative(url) and not is_present(source)]:
            lines.append(f"  {name}: {', '.join(absent)}{f'; from {source.origin}' if source.origin else ''}")
    if lines:
        raise InputError(
            f"data sets of the catalog that are not here, with their files below AUCDIST_DATA (now {data_root()}):\n"
            + "\n".join(lines)
            + "\n`aucdist data fetch NAME` downloads what has an address. Save others there, or set AUCDIST_DATA to the folder "
            "that has them; `aucdist data list` shows what is here"
        )


def fetch(
    name: str, mirror: str = "", received: Callable[[int, int | None], None] = lambda n, stated: None
) -> tuple[list[str], bool]:
    """Download a data set of the catalog to where it is looked up, below AUCDIST_DATA, and check it.

    A file is saved only if it is complete and has the checksum of the catalog. A file that exists is not downloaded
    again. A download that was interrupted starts from the beginning.

    Parameters
    ----------
    mirror : str
        A folder or URL with the files, which have the same names as below AUCDIST_DATA. By default, each file is
        downloaded from its origin.
    received : callable
        Called with the number of bytes that have arrived, and with the total number if the server states it.

    Returns
    -------
    places : list of str
        The local paths of the files, or the URLs of files that are in the download cache.
    fetched : bool
        Whether anything was downloaded.

    Raises
    ------
    InputError
        If there is no such data set, the catalog has no address or no checksum of it, it cannot be downloaded, or it is not what
        the catalog says.
    """
    source = find_source(name)
    if source.format == "embedded":
        return [], False
    if not is_relative(str(source.source)):
        return [str(files.downloaded(url, source.sha256, received)) for url in source.urls()], True
    target, origin = data_root() / source.urls()[0], ORIGIN.fullmatch(source.origin or "")
    if source.sha256 is None or not (mirror or origin):
        raise InputError(
            f"{name} cannot be downloaded: the catalog has no {'checksum' if source.sha256 is None else 'address'} for it. "
            f"Get it{f' from {source.origin}' if source.origin else ''} and save it as {target}"
        )
    if target.is_file() and files.sha256_of(target.read_bytes()) == source.sha256:
        return [str(target)], False
    if origin is None or mirror:
        url = f"{mirror.rstrip('/')}/{source.source}"
    else:
        url = f"{GITHUB}/{origin[1]}/raw/{origin[2]}/{quote(origin[3])}"
    packed_here = target.suffix == ".xz" and not url.endswith(".xz")
    if files.is_web(url):
        copy = files.downloaded(url, None if packed_here else source.sha256, received)
        data = copy.read_bytes()
        copy.unlink()  # a wrong file in the cache would be used again, and a correct one has been copied
    else:
        data = files.read_bytes(url)
    if packed_here:
        data = lzma.compress(unpacked(data, url))
    if (digest := files.sha256_of(data)) != source.sha256:
        raise InputError(
            f"{name}: the file at {files.shown(url)} has sha256 {digest}, but the catalog says {source.sha256}: it "
            "has changed. If you trust it, correct `sha256` in the catalog"
        )
    files.write_bytes(str(target), data)
    return [str(target)], True
