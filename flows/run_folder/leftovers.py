"""What runs that were killed have left at an output, so that the next run names it. Nothing is removed here."""

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aucdist.data.storage.files import local_path, shown

PARTIAL = ".partial"
"""The end of the name of a run folder that is being written."""
MOST_NAMED = 3


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Mark a folder as that of a living process while the context lasts; the mark of a process that is killed ends with it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: the folder then looks like one that was left
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def is_in_use(folder: Path) -> bool:
    """Tell whether a living process has marked a folder as its own, as far as the file system can say."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def leftover_line(folders: list[str], resumes: str) -> str:
    """Return the line that names unfinished folders.

    `resumes`: a clause that says which command resumes the work.
    """
    first = [shown(folder) for folder in folders[:MOST_NAMED]]
    more = f" and {len(folders) - MOST_NAMED} more" if len(folders) > MOST_NAMED else ""
    local = [str(path) for path in map(local_path, folders[:MOST_NAMED]) if path is not None]
    remove = f"once no run writes there, `rm -r {shlex.join(local)}` removes {'them' if len(local) > 1 else 'it'}"
    clauses = [f"unfinished: {', '.join(first)}{more}", resumes, *([remove] if local else [])]
    return "; ".join(clauses)


def unfinished_runs(output: str, command: str) -> str | None:
    """Return the line that names the run folders which killed runs have left half-written in `output`; None if there are none.

    Run folders on object stores are written here first, so that a killed run leaves nothing there that could be resumed.

    `output`: the parent folder of run folders.
    `command`: that writes them, such as ``"aucdist train"``.
    """
    parent = local_path(output)
    if parent is None or not parent.is_dir():
        return None
    left = [path for path in sorted(parent.glob(f".*{PARTIAL}")) if path.is_dir() and not is_in_use(path)]
    if not left:
        return None
    resumes = (
        f"the same `{command}` begins another folder, and goes on from what it finds of checkpoints and finished tasks"
    )
    return leftover_line([str(path) for path in left], resumes)
