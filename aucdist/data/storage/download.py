"""The download cache: files of the web are fetched once, kept, and checked each time they are used."""

import hashlib
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from aucdist.errors import InputError


def cache_folder() -> Path:
    """Return the folder of downloads: AUCDIST_CACHE, or ``aucdist`` in the user's cache folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("AUCDIST_CACHE") or user / "aucdist")


def fetch(url: str, sha256: str | None, download: Callable[[str], object]) -> Path:
    """Return the cached copy of a file, downloading it if there is none or if it is damaged.

    `url`: the address. It names the cached copy, which is never fetched again while it is sound: remove it to do so.
    `sha256`: checksum that the file must have. Without it the checksum of the first download is kept beside the file.
    `download`: writes the file to the path that it is given.
    Raises InputError if the download has another checksum than the expected one. Nothing is kept then.
    """
    folder = cache_folder() / hashlib.sha256(url.encode()).hexdigest()[:16]
    target = folder / (Path(urlsplit(url).path).name or "download")
    noted = target.with_name(target.name + ".sha256")
    expected = sha256 or (noted.read_text() if noted.is_file() else None)
    if expected is not None and target.is_file() and _digest(target) == expected:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{uuid.uuid4().hex}.part"
    try:
        download(str(aside))
        found = _digest(aside)
        if sha256 is not None and found != sha256:
            raise InputError(
                f"{target.name} has sha256 {found}, but {sha256} is expected: the file at its address has changed or "
                "the download was tampered with"
            )
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
    noted.write_text(found)
    return target


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
