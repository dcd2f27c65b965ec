"""The history of a model store: one small file for each change, each created once and never replaced.

The folder of a store has

* ``version-00003-<digest>/``: the files of a version, named after its number and its content;
* ``history/00000004.json``: the fourth change, with the version that is in use from then on, and the checksums of its files.

The last change says which version is current. A change is made by creating the file with the next number, which succeeds for
one writer only; the files of its version are there before. So a reader finds the old version or the new one, whole.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic_core import to_json

from aucdist.data.checked import CHECKED, FileName, FilePath, Positive, Sha256, parse_checked, to_jsonable
from aucdist.data.storage import files
from aucdist.errors import InputError

HISTORY = "history"
CHANGE = re.compile(r"([0-9]{8})\.json")
NAMED = re.compile(r"(.+)@([1-9][0-9]{0,7})")
MOST_CHANGES = 99_999_999


@dataclass(frozen=True)
class Change:
    """A change of the version that is in use.

    `kind`: ``promote`` for a new version, ``rollback`` for one that was there.
    `version`: in use from now on; counted from 1.
    `replaced`: the version that was in use before.
    `folder`: the name of the version's folder.
    `files`: the SHA-256 of each file of the version.
    `about`: what else is kept, in types of JSON: the run, and the test that decided.
    """

    __pydantic_config__: ClassVar = CHECKED

    kind: Literal["promote", "rollback"]
    version: Positive
    replaced: Positive | None
    folder: FileName
    files: Annotated[dict[FilePath, Sha256], Field(min_length=1)]
    time: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Store:
    """A model store, as it was when it was read.

    `changes`: the first change first; empty where there is no store yet.
    """

    url: str
    changes: tuple[Change, ...]

    @property
    def current(self) -> Change | None:
        """The change that is in force; None where there is none."""
        return self.changes[-1] if self.changes else None

    @property
    def versions(self) -> dict[int, Change]:
        """The promotion of each version."""
        return {change.version: change for change in self.changes if change.kind == "promote"}

    def folder_of(self, change: Change) -> str:
        """Return the URL of a version's folder."""
        return f"{self.url}/{change.folder}"

    def version(self, number: int) -> Change:
        """Return the promotion of a version.

        Raises InputError if there is no version of that number.
        """
        known = self.versions
        if number not in known:
            there = f"it has 1 to {max(known)}" if known else "it has none"
            raise InputError(f"{files.shown(self.url)} has no version {number}: {there}")
        return known[number]


def read_store(url: str) -> Store:
    """Read the history of a store.

    Raises InputError if a change is missing or damaged, or the folder cannot be reached.
    """
    url = url.rstrip("/")
    names = [name for name in files.names_in(f"{url}/{HISTORY}") if CHANGE.fullmatch(name)]
    if names != [_name(number) for number in range(1, len(names) + 1)]:
        raise InputError(f"{files.shown(url)}/{HISTORY} is damaged: a change is missing before {names[-1]}")
    changes = []
    for name in names:
        where = f"{url}/{HISTORY}/{name}"
        changes.append(parse_checked(files.read_bytes(where), Change, files.shown(where)))
    return Store(url, tuple(changes))


def append(store: Store, change: Change) -> None:
    """Add a change to the history that was read.

    Raises InputError if another change was made since: nothing is changed then.
    """
    number = len(store.changes) + 1
    if number > MOST_CHANGES:
        raise InputError(f"{files.shown(store.url)} has had {MOST_CHANGES} changes: begin another store")
    data = to_json(to_jsonable(change, Change), indent=2) + b"\n"
    if not files.create_bytes(f"{store.url}/{HISTORY}/{_name(number)}", data):
        raise InputError(
            f"{files.shown(store.url)} was changed by somebody else at the same moment, and this {change.kind} was not "
            "made. Look at it by `aucdist models`, and try again"
        )


def split_version(url: str) -> tuple[str, int | None]:
    """Return the URL of a store, and the version that ``URL@3`` names; None where it names none."""
    url = url.rstrip("/")
    named = NAMED.fullmatch(url)
    return (named[1], int(named[2])) if named else (url, None)


def resolve(url: str, marker: str) -> str:
    """Return the folder of the version that a URL means; any other URL as it is.

    `url`: a store, whose current version is meant, or ``store@3``; or a folder with the file `marker`, or anything
        else.
    `marker`: a file that every version has.
    Raises InputError if the store is damaged, or the version is not there or was removed.
    """
    plain = url.rstrip("/")
    if files.is_web(url) or files.exists(f"{plain}/{marker}"):
        return url
    place, number = split_version(plain)
    store = read_store(place)
    if store.current is None:
        return url  # no store: whatever reads it says what is wrong
    change = store.current if number is None else store.version(number)
    folder = store.folder_of(change)
    if not files.exists(f"{folder}/{marker}"):
        raise InputError(f"version {change.version} of {files.shown(store.url)} was removed, or its files are lost")
    return folder


def _name(number: int) -> str:
    return f"{number:08d}.json"
