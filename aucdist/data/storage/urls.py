"""Paths and URLs: where relative ones start, how they are shown, and which are of S3 or the web."""

import os
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

S3_SCHEMES = ("s3", "s3a")


def data_root() -> Path:
    """Return the folder below which relative paths lie: AUCDIST_DATA, or ``../shared/data`` beside the checkout."""
    default = Path(__file__).resolve().parents[4] / "shared" / "data"
    return Path(os.environ.get("AUCDIST_DATA") or default)


def locate(source: str) -> str:
    """Return a URL as it is, and a path as an absolute one."""
    return source if "://" in source else str(data_root() / source)


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
