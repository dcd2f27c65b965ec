"""Files on the web, which are downloaded once, kept in a cache, and checked each time they are used."""

import fcntl
import hashlib
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from fsspec.asyn import sync

from aucdist.data.storage.guard import BYTES_AT_ONCE, Progress, check_download, watched
from aucdist.data.storage.urls import cache_folder, name_of, reveal, shown
from aucdist.errors import InputError
from aucdist.extras import load_optional

CONNECT_SECONDS = 3
"""The number of seconds within which a server has to accept a connection. A wrong address should be reported within a minute."""
READ_SECONDS = 10
"""The number of seconds within which a server has to send something."""
Received = Callable[[int, int | None], None]
"""A function that is called with the number of bytes received, and with the total if the server states it."""


def web_options() -> dict[str, Any]:
    """Return the options of fsspec for connections to web servers. The whole download may take any time."""
    timeout = load_optional("aiohttp").ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
    return {"client_kwargs": {"timeout": timeout, "trust_env": True}}


def cached_copy(url: str, sha256: str | None, download: Callable[[IO[bytes]], object]) -> Path:
    """Return the cached copy of a file. If there is none, or if it is damaged, the file is downloaded.

    Parameters
    ----------
    url : str
        The address, which identifies the cached copy. A copy that is not damaged is never downloaded again, unless it is removed.
    sha256 : str or None
        The checksum that the file must have. Without it, the checksum of the first download is kept beside the file.
    download : callable
        Writes the content into the open file that is its argument.

    Raises
    ------
    InputError
        If the checksum of the download is not the expected one. Then nothing is kept.
    """
    folder = cache_folder() / hashlib.sha256(reveal(url).encode()).hexdigest()[:16]
    target = folder / (name_of(url) or "download")
    noted = target.with_name(target.name + ".sha256")
    expected = sha256 or (noted.read_text() if noted.is_file() else None)
    if expected is not None and target.is_file() and _file_digest(target) == expected:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.parent.glob("*/.*.part"):  # these files are left if a download is killed
        with suppress(OSError), path.open("rb") as partial:
            fcntl.flock(partial, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the process of the download is alive
            if path.stat().st_mtime < time.time() - 60:  # a newer file may not have been locked yet
                path.unlink()
    aside = folder / f".{uuid.uuid4().hex}.part"
    try:
        with aside.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the lock ends with the process, for whatever reason
            download(file)
            file.flush()
            digest = _file_digest(aside)
            if sha256 is not None and digest != sha256:
                raise InputError(
                    f"{target.name} has sha256 {digest}, but {sha256} is expected: the file at its address has changed, or was "
                    "altered on the way. Compare it with its source; if you trust it, correct `sha256`"
                )
            aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
    noted.write_text(digest)
    return target


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(fs: Any, url: str, received: Received, file: IO[bytes]) -> None:
    """Download a file. Give up if the server is too slow, or sends more than the limit or the disk allows."""
    progress, where, folder = Progress(), shown(url), Path(file.name).parent

    async def receive() -> None:
        """Receive the file, and write it piece by piece."""
        session, checked = await fs.set_session(), 0
        async with session.get(fs.encode_url(reveal(url)), **fs.kwargs) as answer:
            fs._raise_not_found_for_status(answer, where)
            packed = answer.headers.get("Content-Encoding", "identity") != "identity"
            stated = None if packed else answer.content_length
            check_download(stated or 0, stated, folder, where)
            while chunk := await answer.content.read(BYTES_AT_ONCE):
                file.write(chunk)
                progress.add(len(chunk))
                received(progress.received, stated)
                if progress.received - checked > BYTES_AT_ONCE:
                    checked = progress.received
                    check_download(checked, stated, folder, where)

    sync(fs.loop, watched, receive(), progress)
