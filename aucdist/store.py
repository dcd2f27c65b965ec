"""A model store: the versions of a model, the version that is in use, the tests that decided about promotions, and the lease.

The folder of a store has these files:

* ``version-00003-<digest>/`` has the files of a version. Its name has the number of the version and a digest of its content.
* ``history/00000004.json`` is the fourth change: the version that is in use from then on, and the checksums of its files.
* ``decisions/<time>.json`` is the test of a run for promotion, whether or not the run was promoted.
* ``leases/00000007.json`` is the seventh lease. The file can be created only once, so only one process gets it. The holder
  rewrites ``00000007.alive`` regularly, and creates ``00000007.done`` at the end. A process may take the next number if the
  lease is done, or if it was not renewed for a while because its holder was killed.

The last change says which version is in use. To make a change, a process first writes the files of the version, and then
creates the file of the change with the next number, which succeeds for one process only. A reader therefore finds either the
complete old version or the complete new one.
"""

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal, Required

from pydantic import Field, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict

from aucdist.data.own_files import (
    MORE_KEYS,
    NO_MORE_KEYS,
    Count,
    FileName,
    FilePath,
    PositiveCount,
    Sha256,
    read_as,
    read_json,
    to_jsonable,
)
from aucdist.data.storage import files
from aucdist.errors import InputError, Json

HISTORY, DECISIONS = "history", "decisions"
NUMBERED_FILE = re.compile(r"([0-9]{8})\.json")
"""The file of a change, or of a lease."""
VERSION_URL = re.compile(r"(.+)@([1-9][0-9]{0,7})")
MODEL_FILE = "model.json"
"""The file of a model, which every version has. It is written last and removed first, so that an incomplete version is not
read."""
LEASES = "leases"
RENEWAL_SECONDS = 20.0
"""The number of seconds between two renewals of a lease."""
EXPIRY_SECONDS = 300.0
"""The number of seconds without a renewal after which the holder of a lease counts as dead. The clocks of machines may differ by
less."""


@with_config(MORE_KEYS)
class Decision(TypedDict, total=False):
    """The test of a run against the version in use, as JSON values. `flows.promote` creates it."""

    value: Required[float]
    low: Required[float]
    high: Required[float]
    rows: Required[Count]
    margin: Required[float]
    metric: Annotated[Literal["auc", "partial_auc", "average_precision", "macro_auc"], read_as("metric", "measure")]
    max_fpr: float
    condition: str
    holds: bool
    time: str
    run: str
    version: PositiveCount


@with_config(MORE_KEYS)
class PromotionRecord(TypedDict, total=False):
    """The record of a promotion: the run that was promoted, and the test that decided."""

    run: str
    condition: str
    decision: Decision | None


@dataclass(frozen=True)
class Change:
    """A change of the version that is in use.

    Attributes
    ----------
    kind : {"promote", "rollback"}
        ``promote`` for a new version, ``rollback`` for an earlier one.
    version : int
        The version that is in use from now on, counted from 1.
    replaced : int or None
        The version that was in use before.
    folder : str
        The name of the version's folder.
    files : dict of str to str
        The SHA-256 of each file of the version.
    time : str
        The time of the change, as in ISO 8601.
    about : PromotionRecord
        The record of the promotion of this version.
    """

    __pydantic_config__ = NO_MORE_KEYS

    kind: Literal["promote", "rollback"]
    version: PositiveCount
    replaced: PositiveCount | None
    folder: FileName
    files: Annotated[dict[FilePath, Sha256], Field(min_length=1)]
    time: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    about: PromotionRecord = field(default_factory=lambda: PromotionRecord())


@dataclass(frozen=True)
class Store:
    """A snapshot of a model store.

    Attributes
    ----------
    url : str
        The folder of the store, a path or URL.
    changes : tuple of Change
        In chronological order; empty if there is no store yet.
    """

    url: str
    changes: tuple[Change, ...]

    @property
    def current(self) -> Change | None:
        """The last change, which says which version is in use. None if there is no change."""
        return self.changes[-1] if self.changes else None

    @property
    def versions(self) -> dict[int, Change]:
        """The change that promoted each version, by the number of the version."""
        return {change.version: change for change in self.changes if change.kind == "promote"}

    def folder_of(self, change: Change) -> str:
        """Return the URL of the folder of a version."""
        return f"{self.url}/{change.folder}"

    def version(self, number: int) -> Change:
        """Return the change that promoted a version.

        Parameters
        ----------
        number : int
            The number of the version.

        Returns
        -------
        Change

        Raises
        ------
        InputError
            If there is no version of that number.
        """
        known = self.versions
        if number not in known:
            raise InputError(
                f"{files.shown(self.url)} has no version {number}: it has {f'1 to {max(known)}' if known else 'none'}. List them "
                "with `aucdist models`"
            )
        return known[number]


def read_store(url: str) -> Store:
    """Read the history of a store.

    Parameters
    ----------
    url : str
        The folder of the store.

    Returns
    -------
    Store

    Raises
    ------
    InputError
        If a change is missing or damaged, or the folder cannot be reached.
    """
    url = url.rstrip("/")
    numbers = _file_numbers(f"{url}/{HISTORY}")
    if numbers != list(range(1, len(numbers) + 1)):
        raise InputError(
            f"{files.shown(url)}/{HISTORY} is damaged: a change is missing before {numbers[-1]:08d}.json. Copy the store again"
        )
    return Store(url, tuple(read_json(f"{url}/{HISTORY}/{number:08d}.json", Change) for number in numbers))


def check_name(url: str) -> None:
    """Check that a store may have a name, so that every command finds the store by it.

    Parameters
    ----------
    url : str
        The folder of the store.

    Raises
    ------
    InputError
        If the name is empty, names a version, or names something other than a folder.
    """
    plain = url.rstrip("/")
    name = plain.rpartition("/")[2]
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", plain)
    if not plain.strip() or name in (".", "..") or plain.endswith(":"):
        problem = "it names no folder of its own"
    elif VERSION_URL.fullmatch(plain):
        problem = "URL@3 names the third version of a store, so that no store can be called so"
    elif plain.startswith("~"):
        problem = "the shell writes out ~ only where it is not in quotes; give the whole path"
    elif scheme and not plain[scheme.end() :].startswith("//"):
        problem = f"what begins with {scheme[0]} is neither a path nor a URL"
    elif plain.startswith("file://") and not plain.startswith("file:///"):
        problem = "a file:// URL has three slashes before its path"
    elif name.endswith(".json") or "::" in plain or not plain.isprintable():
        problem = "a store may not end in .json, which is the file of a scorecard, nor have `::` or signs that cannot be printed"
    else:
        return
    raise InputError(f"{files.shown(url)!r} cannot be a model store: {problem}")


def append(store: Store, change: Change) -> None:
    """Add a change to the history of a store.

    Parameters
    ----------
    store : Store
        The store as it was read.
    change : Change
        The change to add.

    Raises
    ------
    InputError
        If another process made a change since the store was read. Then nothing is changed.
    """
    data = to_json(to_jsonable(change, Change), indent=2) + b"\n"
    if not files.create_bytes(f"{store.url}/{HISTORY}/{len(store.changes) + 1:08d}.json", data):
        raise InputError(
            f"{files.shown(store.url)} was changed by another process at the same moment, and this {change.kind} was not "
            "made. Look at it with `aucdist models`, and try again"
        )


def split_store_url(url: str) -> tuple[str, int | None]:
    """Return the URL of a store, and the version that ``URL@3`` names, or None if the URL names no version.

    Parameters
    ----------
    url : str
        ``URL`` or ``URL@3``.

    Returns
    -------
    tuple (str, int or None)
    """
    url = url.rstrip("/")
    named = VERSION_URL.fullmatch(url)
    return (named[1], int(named[2])) if named else (url, None)


def read_version(url: str) -> tuple[Store, Change | None]:
    """Return a store, and a version: the one that ``URL@3`` names, or the one in use.

    Parameters
    ----------
    url : str
        The folder of the store, with or without ``@`` and the number of a version.

    Returns
    -------
    store : Store
    version : Change or None
        None if there is no store at this URL.

    Raises
    ------
    InputError
        If the store is damaged, or has no such version.
    """
    location, number = split_store_url(url)
    store = read_store(location)
    return store, store.version(number) if number and store.current else store.current


def resolve(url: str, marker: str = MODEL_FILE) -> str:
    """Return the folder of the version that a URL means, or the URL itself if it is not that of a store.

    Parameters
    ----------
    url : str
        A store, which means its current version; ``store@3``; a folder with the file `marker`; or anything else.
    marker : str, default=MODEL_FILE
        A file that every version has.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If the store is damaged, or the version does not exist or was removed.
    """
    plain = url.rstrip("/")
    if files.is_web(url) or files.exists(f"{plain}/{marker}"):
        return url
    store, change = read_version(plain)
    if change is None:
        return url  # this is not a store, and the code that reads the URL raises an error if necessary
    folder = store.folder_of(change)
    if not files.exists(f"{folder}/{marker}"):
        raise InputError(
            f"version {change.version} of {files.shown(store.url)} was removed, or its files are lost: name another "
            "one, as in URL@2"
        )
    return folder


def promote(store: Store, content: Mapping[str, bytes], about: PromotionRecord) -> Change:
    """Make files the current version of a store.

    The files are written first, `MODEL_FILE` last, and read back. Then the change is made. If the process is killed before
    that, the store is as it was, except for a folder that nobody reads.

    Parameters
    ----------
    store : Store
        The store as it was read before the decision. The promotion fails if it has changed since.
    content : mapping of str to bytes
        The files by name.
    about : PromotionRecord
        As `Change.about`.

    Raises
    ------
    InputError
        If another change was made since the store was read, or a file cannot be written.
    """
    sums = {name: files.sha256_of(data) for name, data in sorted(content.items())}
    digest = files.sha256_of(repr(sums).encode())[:16]
    number = max(store.versions, default=0) + 1
    replaced = store.current.version if store.current else None
    change = Change("promote", number, replaced, f"version-{number:05d}-{digest}", sums, about=about)
    folder = store.folder_of(change)
    for name in sorted(content, key=lambda name: (name == MODEL_FILE, name)):
        files.write_bytes(f"{folder}/{name}", content[name])
    _verify(folder, sums, "nothing was promoted")
    try:
        append(store, change)
    except InputError:
        # The process that made the other change may have promoted the same content, and then its folder is this one.
        if all(known.folder != change.folder for known in read_store(store.url).changes):
            files.remove(folder)
        raise
    return change


def _verify(folder: str, sums: Mapping[str, str], otherwise: str) -> None:
    """Raise an InputError unless each file of a version has its checksum."""
    for name, sha256 in sums.items():
        if files.sha256_of(files.read_bytes(f"{folder}/{name}")) != sha256:
            raise InputError(
                f"{files.shown(folder)}/{name} is damaged: its checksum is not the one in the history: {otherwise}"
            )


def rollback(store: Store, to: int | None = None) -> Change:
    """Make an earlier version the current one.

    Parameters
    ----------
    store : Store
        The store as it was read.
    to : int, optional
        The number of the version. By default, it is the version that the current one replaced when it was promoted.

    Returns
    -------
    Change

    Raises
    ------
    InputError
        If there is no such version, it was removed or is the current one, or another process made a change at the same moment.
    """
    current = store.current
    if current is None:
        raise InputError(
            f"{files.shown(store.url)} is not a model store, so there is nothing to roll back: name a store"
        )
    target = store.version(current.version).replaced if to is None else to
    if target is None:
        raise InputError(
            f"{files.shown(store.url)}: there is no version before {current.version} to go back to. Name one, as in URL@2"
        )
    if target == current.version:
        raise InputError(
            f"version {target} of {files.shown(store.url)} is the current one already: name another, as in URL@2"
        )
    promoted = store.version(target)
    folder = store.folder_of(promoted)
    if not files.exists(f"{folder}/{MODEL_FILE}"):
        raise InputError(f"version {target} of {files.shown(store.url)} was removed: name another, as in URL@2")
    _verify(folder, promoted.files, "it stays out of use")
    change = Change("rollback", target, current.version, promoted.folder, promoted.files)
    append(store, change)
    return change


def stored_version_numbers(store: Store) -> list[int]:
    """Return the numbers of the versions whose files still exist, ascending."""
    return [
        n for n, change in sorted(store.versions.items()) if files.exists(f"{store.folder_of(change)}/{MODEL_FILE}")
    ]


def remove_old_versions(store: Store, most: int) -> list[int]:
    """Remove old versions until at most `most` are left, and return the numbers of those removed.

    The current version is always kept, and the oldest of the others are removed first. The history is not shortened.

    Parameters
    ----------
    store : Store
        The store.
    most : int
        At least 1.
    """
    current = store.current
    if current is None:
        return []
    stored = stored_version_numbers(store)
    gone = [n for n in stored if n < current.version][: max(len({*stored, current.version}) - most, 0)]
    folders = [store.folder_of(store.version(number)) for number in gone]
    for folder in folders:
        files.check_not_link(folder)  # before any is removed: files behind a link do not belong to the store
    for folder in folders:
        files.remove(f"{folder}/{MODEL_FILE}")
        files.remove(folder)
    return gone


def keep_decision(store: Store, decision: Json, picture: str) -> str:
    """Write a decision and its picture under a new name, and return the URL of the picture.

    Parameters
    ----------
    store : Store
        The store.
    decision : dict
        As JSON values.
    picture : str
        The picture, as SVG.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    now = datetime.now(UTC)
    data = to_json(decision | {"time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}, indent=2) + b"\n"
    name = f"{now:%Y%m%d-%H%M%S}-{now.microsecond:06d}-{files.sha256_of(data)[:8]}"
    url = f"{store.url}/{DECISIONS}/{name}"
    files.write_bytes(f"{url}.svg", picture.encode())
    files.write_bytes(f"{url}.json", data)
    return f"{url}.svg"


def read_decisions(store: Store) -> tuple[list[Decision], list[str]]:
    """Return all decisions in chronological order, and the error messages of damaged ones."""
    decisions, faults = [], []
    for name in files.names_in(f"{store.url}/{DECISIONS}"):
        if name.endswith(".json"):
            try:
                decisions.append(read_json(f"{store.url}/{DECISIONS}/{name}", Decision))
            except InputError as error:
                faults.append(str(error))
    return decisions, faults


@with_config(MORE_KEYS)
class LeaseHeartbeat(TypedDict):
    """The content of the file that shows that the holder of a lease is running."""

    time: float


class LeaseHolder(LeaseHeartbeat):
    """The content of the file of a lease."""

    what: str
    host: str
    process: int


@contextmanager
def lease(url: str, what: str) -> Iterator["Lease"]:
    """Hold the lease of a store while the context lasts.

    Parameters
    ----------
    url : str
        The folder of the store.
    what : str
        What holds the lease. The error of other processes names it.

    Yields
    ------
    Lease

    Raises
    ------
    InputError
        If another process holds the lease.
    """
    held = _take(url.rstrip("/"), what)
    ended = threading.Event()

    def renew() -> None:
        """Renew the lease regularly, until the context ends."""
        while not ended.wait(RENEWAL_SECONDS):
            with suppress(InputError):  # if the store cannot be reached now, the next renewal may succeed
                held.renew()

    thread = threading.Thread(target=renew, daemon=True, name="lease")
    thread.start()
    try:
        yield held
    finally:
        ended.set()
        thread.join()
        with suppress(InputError):  # without the file that ends it, the lease expires
            held.end()


@dataclass(frozen=True)
class Lease:
    """A lease that this process holds."""

    url: str
    number: int

    def renew(self) -> None:
        """Record that the holder is running."""
        files.write_bytes(f"{_at(self.url, self.number)}.alive", to_json({"time": time.time()}))

    def end(self) -> None:
        """Release the lease."""
        files.write_bytes(f"{_at(self.url, self.number)}.done", b"done\n")

    def check(self) -> None:
        """Raise an InputError if another process has taken the lease, because this one did not renew it in time."""
        if max(_file_numbers(f"{self.url}/{LEASES}"), default=0) != self.number:
            raise InputError(
                f"another run has taken over the lease of {files.shown(self.url)}, because this run did not renew it in time. "
                "Nothing has been changed since then. Run the command again"
            )


def _take(url: str, what: str) -> Lease:
    last = max(_file_numbers(f"{url}/{LEASES}"), default=0)
    if last and not files.exists(f"{_at(url, last)}.done"):
        try:
            taken = read_json(f"{_at(url, last)}.json", LeaseHolder)
            alive = f"{_at(url, last)}.alive"
            last_renewed = read_json(alive, LeaseHeartbeat)["time"] if files.exists(alive) else taken["time"]
        except InputError as error:
            raise InputError(
                f"it is not known whether a run is using {files.shown(url)}: {error}. If no run uses it, remove the named file"
            ) from None
        # A time that lies further in the future does not show that the holder runs, either.
        if abs(time.time() - last_renewed) < EXPIRY_SECONDS:
            raise InputError(
                f"{files.shown(url)} is in use by {taken['what']} on {taken['host']} (process {taken['process']}): wait until it "
                f"has ended. If it was killed, its lease expires within {EXPIRY_SECONDS:g} seconds"
            )
    about = {
        "what": what, "host": socket.gethostname(), "process": os.getpid(), "time": time.time(), "key": uuid.uuid4().hex,
    }  # fmt: skip
    if not files.create_bytes(f"{_at(url, last + 1)}.json", to_json(about)):
        raise InputError(f"{files.shown(url)} was taken by another run at the same moment: wait until it has ended")
    return Lease(url, last + 1)


def _file_numbers(folder: str) -> list[int]:
    """Return the numbers of the changes, or of the leases, in a folder."""
    return [int(named[1]) for name in files.names_in(folder) if (named := NUMBERED_FILE.fullmatch(name))]


def _at(url: str, number: int) -> str:
    return f"{url}/{LEASES}/{number:08d}"
