"""Downloads of data sets of the catalog to the folder where they are looked up."""

import hashlib
import lzma
import re
from collections.abc import Callable
from urllib.parse import quote

from aucdist.data import sources
from aucdist.data.storage import files
from aucdist.data.storage.guard import unpacked
from aucdist.data.storage.urls import data_root, is_relative
from aucdist.errors import InputError

GITHUB = "https://github.com"
ORIGIN = re.compile(r"github:([^@:]+)@([0-9a-f]+):(.+)")
"""Repository, commit and path of an ``origin``."""


def fetch(
    name: str, mirror: str = "", received: Callable[[int, int | None], None] = lambda n, stated: None
) -> tuple[list[str], bool]:
    """Download a data set of the catalog to where it is looked up, below AUCDIST_DATA, and check it.

    A file is there whole, with the checksum that the catalog states, or not at all. One that is there already stays; a download
    that was cut off begins again.

    Parameters
    ----------
    mirror : str
        A folder or URL that has the files under their names below AUCDIST_DATA; by default each comes from its origin.
    received : callable
        Takes the bytes that have come, and all of them where the server says how many.

    Returns
    -------
    places : list of str
        The files, or their addresses where they are of the web and have been read into the download cache.
    fetched : bool
        Whether anything was downloaded.

    Raises
    ------
    InputError
        If there is no such data set, the catalog has no address or no checksum of it, it cannot be downloaded, or it is not what
        the catalog says.
    """
    source = sources.find(name)
    if source.format == "embedded":
        return [], False
    if not is_relative(str(source.source)):
        return [str(files.downloaded(url, source.sha256, received)) for url in source.urls()], True
    target, origin = data_root() / source.urls()[0], ORIGIN.fullmatch(source.origin or "")
    if source.sha256 is None or not (mirror or origin):
        raise InputError(
            f"{name} cannot be fetched: the catalog has no {'checksum' if source.sha256 is None else 'address'} of it"
            f"{f' (it is from {source.origin})' if source.origin else ''}; save it as {target}"
        )
    if target.is_file() and _digest(target.read_bytes()) == source.sha256:
        return [str(target)], False
    if origin is None or mirror:
        url = f"{mirror.rstrip('/')}/{source.source}"
    else:
        url = f"{GITHUB}/{origin[1]}/raw/{origin[2]}/{quote(origin[3])}"
    packed_here = target.suffix == ".xz" and not url.endswith(".xz")
    if files.is_web(url):
        copy = files.downloaded(url, None if packed_here else source.sha256, received)
        data = copy.read_bytes()
        copy.unlink()  # a wrong one would be taken again, a right one is not needed twice
    else:
        data = files.read_bytes(url)
    if packed_here:
        data = lzma.compress(unpacked(data, url))
    if (digest := _digest(data)) != source.sha256:
        raise InputError(
            f"{name}: what is at {files.shown(url)} has sha256 {digest}, and the catalog says {source.sha256}: it has changed"
        )
    files.write_bytes(str(target), data)
    return [str(target)], True


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
