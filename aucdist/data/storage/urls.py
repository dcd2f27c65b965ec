"""Paths and URLs: where relative ones are looked up, how they are shown, and which are of S3 or the web."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from aucdist.errors import InputError

S3_SCHEMES = ("s3", "s3a")


def data_root() -> Path:
    """Return the folder of data sets: AUCDIST_DATA, or ``../shared/data`` beside the checkout."""
    default = Path(__file__).resolve().parents[4] / "shared" / "data"
    return Path(os.environ.get("AUCDIST_DATA") or default)


def is_relative(source: str) -> bool:
    """Tell whether a source is a relative path, and not an absolute one or a URL."""
    return "://" not in source and not Path(source).is_absolute()


def candidates(source: str, folders: Sequence[Path] = ()) -> list[Path]:
    """Return where a relative path is looked up, in order: in `folders`, the current folder, and the folder of data sets."""
    return [folder / source for folder in dict.fromkeys(Path(f).absolute() for f in (*folders, Path(), data_root()))]


def find(source: str, folders: Sequence[Path] = ()) -> str | None:
    """Return the first of `candidates` that is there, or that a pattern matches; None if there is none."""
    return next((str(path) for path in candidates(source, folders) if _is_there(path)), None)


def not_found(source: str, folders: Sequence[Path] = ()) -> InputError:
    """Return the error for a relative path that `find` does not find; it lists what was tried."""
    tried = ", ".join(str(path) for path in candidates(source, folders))
    yaml = "beside the YAML file, " if folders else ""
    return InputError(
        f"cannot read {source}: no such file or folder. Relative paths are looked up {yaml}in the current folder, and below "
        f"AUCDIST_DATA ({'set' if os.environ.get('AUCDIST_DATA') else 'not set'}); tried: {tried}"
    )


def require(source: str, folders: Sequence[Path] = ()) -> str:
    """Return a URL or an absolute path as it is, and a relative path where `find` finds it.

    Raises InputError if a relative path is nowhere; the message lists what was tried.
    """
    found = find(source, folders) if is_relative(source) else source
    if found is None:
        raise not_found(source, folders)
    return found


def _is_there(path: Path) -> bool:
    try:
        if path.exists():
            return True
        pattern = str(path.relative_to(path.anchor))
        return any(c in pattern for c in "*?[") and next(Path(path.anchor).glob(pattern), None) is not None
    except (OSError, ValueError):
        return False


def locate(source: str) -> str:
    """Return a URL as it is, and a path as an absolute one: where `find` finds it, else below the folder of data sets."""
    if not is_relative(source):
        return source
    return find(source) or str(data_root().absolute() / source)


def shown(url: str) -> str:
    """Return a URL for messages: without user, password and query, where secrets may stand."""
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that hold no address; what is a password in there is unknown
        scheme, there, _ = url.partition("://")
        return f"{scheme}://(no valid URL)" if there else url
    if not parts.scheme or not parts.netloc:
        return url
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_web(url: str) -> bool:
    """Tell whether a URL is one of the web, where files are downloaded and folders cannot be listed."""
    return url.startswith(("https://", "http://"))


def is_s3(url: str) -> bool:
    """Tell whether a URL is one of S3."""
    return url.startswith(tuple(f"{scheme}://" for scheme in S3_SCHEMES))
