"""Changes of a model store: a new version, a way back, and the removal of old versions."""

import hashlib
from collections.abc import Mapping
from typing import Any

from aucdist.data.storage import files
from aucdist.errors import InputError
from aucdist.store.history import Change, Store, append, read_store


def promote(store: Store, content: Mapping[str, bytes], marker: str, about: dict[str, Any]) -> Change:
    """Make files the current version of a store.

    The files are written first, `marker` last, and read back; then the change is made. After a kill the store is as it was, but
    for a folder that nobody reads.

    `store`: as it was read, before anything was decided: the promotion fails if it has changed since.
    `content`: the files by name.
    `marker`: the file of them that every version has.
    `about`: as `Change.about`.
    Raises InputError if another change was made since the store was read, or a file cannot be written.
    """
    current = store.current
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(content.items())}
    digest = hashlib.sha256(repr(sums).encode()).hexdigest()[:16]
    number = max(store.versions, default=0) + 1
    replaced = None if current is None else current.version
    change = Change("promote", number, replaced, f"version-{number:05d}-{digest}", sums, about=about)
    folder = store.folder_of(change)
    for name in sorted(content, key=lambda name: (name == marker, name)):
        files.write_bytes(f"{folder}/{name}", content[name])
    for name, sha256 in sums.items():
        if hashlib.sha256(files.read_bytes(f"{folder}/{name}")).hexdigest() != sha256:
            raise InputError(f"{files.shown(folder)}/{name} was altered while it was written: nothing was promoted")
    try:
        append(store, change)
    except InputError:
        # Whoever won may have promoted the same content, whose folder is this one.
        if all(known.folder != change.folder for known in read_store(store.url).changes):
            files.remove(folder)
        raise
    return change


def rollback(store: Store, marker: str, to: int | None = None) -> Change:
    """Make an earlier version the current one.

    `to`: the version; by default the one that the current version replaced when it was promoted.
    Raises InputError if there is no such version, if it was removed or is the current one, or another change was made
        at the same moment.
    """
    current = store.current
    if current is None:
        raise InputError(f"{files.shown(store.url)} is no model store: there is nothing to roll back")
    target = store.version(current.version).replaced if to is None else to
    if target is None:
        raise InputError(f"version {current.version} of {files.shown(store.url)} replaced none: name one, as in URL@2")
    if target == current.version:
        raise InputError(f"version {target} of {files.shown(store.url)} is the current one already")
    promoted = store.version(target)
    if not files.exists(f"{store.folder_of(promoted)}/{marker}"):
        raise InputError(f"version {target} of {files.shown(store.url)} was removed: name another, as in URL@2")
    change = Change("rollback", target, current.version, promoted.folder, promoted.files)
    append(store, change)
    return change


def present(store: Store, marker: str) -> list[int]:
    """Return the numbers of the versions whose files are there, ascending."""
    return [n for n, change in sorted(store.versions.items()) if files.exists(f"{store.folder_of(change)}/{marker}")]


def keep(store: Store, marker: str, most: int) -> list[int]:
    """Remove old versions until at most so many are left, and return the numbers of those removed.

    The current version stays, and of the others the newest. The history stays whole.

    `marker`: as for `promote`. It is removed first: a version without it is not read.
    `most`: at least 1.
    """
    if most < 1:
        raise InputError(f"at least 1 version is kept, not {most}")
    current = store.current
    if current is None:
        return []
    others = [n for n in present(store, marker) if n < current.version]
    newer = [n for n in present(store, marker) if n > current.version]
    room = max(most - 1 - len(newer), 0)
    gone = others[: max(len(others) - room, 0)]
    for number in gone:
        folder = store.folder_of(store.version(number))
        files.remove(f"{folder}/{marker}")
        files.remove(folder)
    return gone
