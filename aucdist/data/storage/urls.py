"""Paths and URLs: where relative paths are looked up, which URLs are on S3 or the web, and how secrets are hidden.

A URL may contain secrets: a user, a password, a query. `enter` parses it once, where it comes from the command line, a YAML
file, the environment or a `Source`. From then on it is a `Url`, whose text has a number instead of the secrets
(``https://secret-1@host/path``), so that nothing can print, log or store them. `reveal` returns the whole URL for the client
that opens it, and `hide` removes the secrets from the error of a client.
"""

import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import unquote, unquote_plus

from pydantic import AfterValidator

from aucdist.errors import InputError, first_line

S3_SCHEMES = ("s3", "s3a")
FOLDER_SCHEMES = (*S3_SCHEMES, "file", "gs", "gcs", "az", "abfs", "memory", "local")
"""The schemes of URLs whose paths may contain ``?`` (in patterns) and ``@`` (before the number of a version)."""
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
WEB_SCHEMES = ("http", "https")
URL_IN_TEXT = re.compile(SCHEME.pattern + r"[^\s'\"]*")
NUMBERED_SECRET = re.compile(r"(.*?://)secret-[0-9]+@")
MISTYPED_SECRET = re.compile(r"[^/]+:.*@")
"""The part of a path that may be the password of a URL without its two slashes."""
SECRET_KEY = re.compile(r"pass|pwd|token|secret|sig|cred|auth|key|odbc_connect", re.IGNORECASE)
MIN_HIDDEN = 4
"""The length from which a secret is replaced wherever it occurs in a text. A text with a shorter secret is left out as a
whole."""

_whole: dict[str, str] = {}
"""The whole URL for each numbered URL that this process knows."""
_secrets: set[str] = set()


class Url(str):
    """A URL whose text has a number instead of user, password and query.

    If it is pickled, another process gets the secrets as well.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (str(self), _whole[str(self)])


def enter(url: str) -> str:
    """Return a `Url` if the URL has secrets, or else the unchanged text."""
    if not isinstance(url, str) or isinstance(url, Url) or "://" not in url:
        return url
    if NUMBERED_SECRET.match(url):
        return Url(url) if url in _whole else url
    if (visible := _visible(url)) == url:
        return url
    scheme, _, rest = visible.partition("://")
    number = 1
    while _whole.get(name := f"{scheme}://secret-{number}@{rest}", url) != url:
        number += 1
    return _arrived(name, url)


Location = Annotated[str, AfterValidator(enter)]
"""A path or a URL in a configuration."""


def _arrived(name: str, url: str) -> Url:
    _whole[name] = url
    _secrets.update(_secrets_of(url))
    return Url(name)


def reveal(url: str) -> str:
    """Return the URL with its secrets for the client that opens it. Files below a known URL are revealed as well.

    Raises
    ------
    InputError
        If this process does not know its secrets, for example because an earlier run wrote the URL to a file.
    """
    if not NUMBERED_SECRET.match(url):
        return str(url)
    if url in _whole:
        return _whole[url]
    parents = [name for name in _whole if url.startswith(f"{name.rstrip('/')}/")]
    if not parents:
        raise InputError(f"the password or query of {shown(url)} was not kept: give the whole URL again")
    parent = max(parents, key=len)
    whole = _whole[parent]
    base = whole[: len(whole) - len(_query_of(whole))]
    return base.rstrip("/") + url[len(parent.rstrip("/")) :] + _query_of(whole)


def hide(text: str) -> str:
    """Remove the secrets of all known URLs from a text, such as the error of a client."""
    for secret in sorted(_secrets, key=len, reverse=True):
        if len(secret) >= MIN_HIDDEN:
            text = text.replace(secret, "***")
    return text


def hide_error(error: BaseException, *urls: str) -> str:
    """Return the first line of a client's error without the secrets of these URLs, or its type if this is impossible."""
    text = first_line(error)[:300]
    secrets = {secret for url in urls for secret in _secrets_of(reveal(url))}
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) < MIN_HIDDEN and secret in text:
            return type(error).__name__
        text = text.replace(secret, "***")
    return hide(text)


def secret_urls(*urls: str) -> tuple[Url, ...]:
    """Return the URLs that have secrets. If they are sent to a worker, the worker knows the secrets."""
    return tuple(dict.fromkeys(url for url in map(enter, urls) if isinstance(url, Url)))


def visible_text(text: str) -> str:
    """Remove secrets from the URLs in a text. A URL ends at a space or a quote."""
    return URL_IN_TEXT.sub(lambda url: shown(url[0]), text)


FreeText = Annotated[str, AfterValidator(visible_text)]
"""A text in a configuration that may mention a URL."""


def shown(url: str) -> str:
    """Return a URL for messages, without user, password and query, and without the number that replaces them."""
    return _visible(NUMBERED_SECRET.sub(r"\1", url, count=1)) if "://" in url else MISTYPED_SECRET.sub("***@", str(url))


def _visible(url: str) -> str:
    """Return the part of a URL that contains no secret.

    Passwords may contain any character, including those that should have been escaped. If it is unclear where a password ends,
    only the scheme is visible. If a URL of the web has an ``@`` after a ``/``, the part after the last ``@`` is visible as
    well. A path with an ``@`` then loses its beginning.
    """
    scheme, _, rest = url.partition("://")
    base = rest[: len(rest) - len(_query_of(url))]
    authority, slash, path = base.partition("/")
    if scheme.lower() in WEB_SCHEMES and "@" in path:
        return f"{scheme}://***/{path.rpartition('@')[2]}"
    _, at, host = authority.rpartition("@")
    more_at = "@" in rest[len(authority) :]
    _, colon, port = (host.partition("]")[2] if host.startswith("[") else host).partition(":")
    if at:
        unclear = more_at
    elif colon and not port.isdecimal():  # What looks like host and port is a user and the beginning of a password.
        unclear = more_at or (bool(port) and scheme.lower() not in ("tcp", "tls"))
    else:
        in_fragment = scheme.lower() in WEB_SCHEMES and "@" in rest.partition("?")[0]
        may_be_password = in_fragment or not slash or scheme.lower() not in (*FOLDER_SCHEMES, *WEB_SCHEMES)
        unclear = more_at and bool(authority) and may_be_password
    return f"{scheme}://***" if unclear else f"{scheme}://{host}{slash}{path}"


def name_of(url: str) -> str:
    """Return the last name in a path or URL. Local names may contain ``?`` and ``#``, which begin the query in a URL."""
    return PurePosixPath(url.removesuffix(_query_of(url)) if "://" in url else url).name


def _query_of(url: str) -> str:
    """Return the query and the fragment of a URL, with ``?`` and ``#``."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme in FOLDER_SCHEMES:
        pattern = r"\?[A-Za-z0-9_.-]+=" if scheme in S3_SCHEMES else None
    else:
        pattern = r"[?#]" if scheme in WEB_SCHEMES else r"[?#;]"
    start = re.search(pattern, rest) if pattern else None
    return rest[start.start() :] if start else ""


def _secrets_of(url: str) -> set[str]:
    """Return the secrets of a URL, both as written and decoded."""
    visible = _visible(url)
    if visible == url:
        return set()
    rest, tail = url.partition("://")[2], _query_of(url)
    pieces = [url, tail[1:]]
    for pair in {*re.split(r"[?#&;]", tail[1:]), *tail[1:].split("&")}:  # Values may contain unescaped separators.
        key, _, value = pair.partition("=")
        if SECRET_KEY.search(key) or (len(value) > 11 and not value.isalpha()):
            pieces += [value, *(part.partition("=")[2] for part in unquote_plus(value).split(";"))]
    if "://***" in visible:
        user = rest.rpartition("@")[0]
        pieces += [rest, rest.partition(":")[2], user, user.partition(":")[2]]
    else:
        user = rest.partition("/")[0].rpartition("@")[0]
        pieces.append(user.partition(":")[2] or user)
    return {form for piece in pieces for form in (piece, unquote(piece), unquote_plus(piece)) if form}


def cache_folder() -> Path:
    """Return the folder of downloads: AUCDIST_CACHE, ``aucdist`` in the user's cache folder, or one for temporary files."""
    if named := os.environ.get("AUCDIST_CACHE"):
        return Path(named)
    user = os.environ.get("XDG_CACHE_HOME")
    if not user:
        try:
            user = str(Path.home() / ".cache")
        except RuntimeError:  # the user has no home folder, as in a container
            user = str(Path(tempfile.gettempdir()) / f"aucdist-{os.getuid()}")  # Each user has a separate folder.
    return Path(user) / "aucdist"


def data_root() -> Path:
    """Return the folder of data sets: AUCDIST_DATA, ``../shared/data`` beside a checkout, or ``data`` in the cache."""
    if named := os.environ.get("AUCDIST_DATA"):
        return Path(named)
    root = Path(__file__).resolve().parents[3]
    if (root / "pyproject.toml").is_file():
        return root.parent / "shared/data"
    return cache_folder() / "data"


def is_relative(source: str) -> bool:
    """Return whether a source is a relative path."""
    return "://" not in source and not Path(source).is_absolute()


def lookup_paths(source: str, folders: Sequence[Path] = ()) -> list[Path]:
    """Return where a relative path is looked up, in order: `folders`, the current folder, and the folder of data sets."""
    return [folder / source for folder in dict.fromkeys(Path(f).absolute() for f in (*folders, Path(), data_root()))]


def find(source: str, folders: Sequence[Path] = ()) -> str | None:
    """Return the first of `lookup_paths` that exists or matches as a pattern, or None if there is none."""
    for path in lookup_paths(source, folders):
        with suppress(OSError, ValueError):
            if path.exists() or any(Path(path.anchor).glob(str(path.relative_to(path.anchor)))):
                return str(path)
    return None


def require(source: str, folders: Sequence[Path] = ()) -> str:
    """Return URLs and absolute paths unchanged, and the path at which `find` locates a relative path.

    Raises
    ------
    InputError
        If a relative path does not exist. The message lists where it was looked up.
    """
    place = find(source, folders) if is_relative(source) else source
    if place is None:
        looked_at = ", ".join(str(path) for path in lookup_paths(source, folders))
        raise InputError(
            f"cannot read {source}: no such file or folder. Relative paths are looked up "
            f"{'beside the YAML file, ' if folders else ''}in the current folder, and below AUCDIST_DATA "
            f"({'set' if os.environ.get('AUCDIST_DATA') else 'not set'}); tried: {looked_at}"
        )
    return place


def is_web(url: str) -> bool:
    """Return whether a URL is on the web, where files can be downloaded but folders cannot be listed."""
    return url.startswith(("https://", "http://"))


def is_s3(url: str) -> bool:
    """Return whether a URL is on S3."""
    return url.startswith(tuple(f"{scheme}://" for scheme in S3_SCHEMES))
