"""Checkpoints of a fit: a fit that was lost goes on from one, and ends with the bits it would have had.

What a solver does depends on nothing but its parameters and on what its steps say. So no solver is asked for its state: a journal
keeps what each step said, and a fit that goes on runs the same solver again, which gets its answers from the journal, without a
look at the rows. When the journal ends, the blocks get back the memory that was written with it, and the steps run again.
"""

import hashlib
import json
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from aucdist.data.block import Block
from aucdist.data.storage.files import exists, names_in, read_bytes, remove, write_bytes
from aucdist.data.storage.retries import patient
from aucdist.engine.blocks import Blocks, Step, Summary, without_rows
from aucdist.engine.serialize import freeze, thaw
from aucdist.errors import InputError, RunError

FORMAT = 1
KEPT = 2
MANIFEST = "checkpoint-"


@dataclass(frozen=True)
class Shelf:
    """A folder, or a prefix of an object store, of files that are named after their content. It travels to the workers."""

    url: str

    def put(self, data: bytes) -> str:
        """Write a file unless it is there, and return its name."""
        name = f"{hashlib.sha256(data).hexdigest()}.npz"
        with patient():
            if not exists(f"{self.url}/{name}"):
                write_bytes(f"{self.url}/{name}", data)
        return name

    def get(self, name: str) -> bytes:
        """Read a file.

        Raises
        ------
        InputError
            If it is not there, or is not what was written.
        """
        with patient():
            data = read_bytes(f"{self.url}/{name}")
        if name != f"{hashlib.sha256(data).hexdigest()}.npz":
            raise InputError(f"{self.url}/{name} is not what was written")
        return data


@dataclass(frozen=True)
class Entry:
    """What a step said: on which branch of the blocks, its name, a digest of its arguments, and its merged summary."""

    branch: int
    step: str
    digest: str
    said: Summary


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint.

    Attributes
    ----------
    number : int
    rounds : int
        Of the solver, so far.
    journal : list of str
        The files that hold the entries, in order.
    memory : dict
        Branch to the files that hold the memory of its blocks.
    """

    number: int
    rounds: int
    journal: list[str]
    memory: dict[int, list[str]]

    @property
    def files(self) -> set[str]:
        """All files it needs."""
        return {*self.journal, *(name for names in self.memory.values() for name in names)}


@without_rows
def save_memory(block: int, memory: Any, shelf: Shelf) -> tuple[Any, Summary]:
    """Write each block's memory."""
    return memory, {"names": [shelf.put(freeze(memory))]}


@without_rows
def restore_memory(block: int, memory: None, shelf: Shelf, names: list[str]) -> tuple[Any, Summary]:
    """Give each block the memory that was written."""
    return thaw(shelf.get(names[block])), {"n": 1}


@without_rows
def look_through(block: int, memory: None, shelf: Shelf, names: list[str]) -> tuple[None, Summary]:
    """Tell which files are not what was written."""
    try:
        shelf.get(names[block])
    except InputError as error:
        return None, {"broken": [str(error)]}
    return None, {"broken": []}


class Journal:
    """What the steps of a fit said, and the checkpoints made of it.

    Parameters
    ----------
    url : str
        A folder of this fit's own, a path or an fsspec URL, which every worker can read and write.
    fingerprint : dict
        What decides the bits, in types of JSON: data, blocks, model, version. A checkpoint of another one is refused.
    blocks : Blocks
        The rows to fit.
    note : callable
        Is told in words what happens.

    Attributes
    ----------
    blocks : Blocks
        What the estimator is to be given.
    rounds : int
        Rounds in the checkpoint that this fit goes on from; 0: from the beginning.

    Raises
    ------
    InputError
        If the checkpoints there are of something else; the message shows both fingerprints.
    """

    def __init__(self, url: str, fingerprint: dict[str, Any], blocks: Blocks, note: Callable[[str], None]):
        self._shelf, self._fingerprint, self._note = Shelf(url.rstrip("/")), fingerprint, note
        self._branches: weakref.WeakValueDictionary[int, JournalledBlocks] = weakref.WeakValueDictionary()
        self._n_branches, self._rounds, self._written_at = 0, 0, time.monotonic()
        self._replay: deque[Entry] = deque()
        self._new: list[Entry] = []
        self._found = self._newest_whole(blocks)
        if self._found is not None:
            for name in self._found.journal:
                self._replay.extend(Entry(*entry) for entry in thaw(self._shelf.get(name)))
            note(f"goes on from the checkpoint of round {self._found.rounds}")
        self.rounds = 0 if self._found is None else self._found.rounds
        self.blocks = JournalledBlocks(self, blocks)

    # ---- what the blocks ask -------------------------------------------------------------------------------------------

    def enter(self, branch: "JournalledBlocks") -> int:
        """Return the number of a new branch; the same solver makes them in the same order."""
        self._branches[self._n_branches] = branch
        self._n_branches += 1
        return self._n_branches - 1

    @property
    def replays(self) -> bool:
        """Whether answers still come from the journal."""
        return bool(self._replay)

    def answer(self, branch: int, step: Step, args: tuple[Any, ...]) -> Summary:
        """Return what this step said when the fit came here before.

        Raises
        ------
        RunError
            If the fit does not come here as it did before.
        """
        entry = self._replay.popleft()
        if (branch, step.__name__, digest(args)) != (entry.branch, entry.step, entry.digest):
            raise RunError(
                f"this fit does not repeat the one of the checkpoint at {self._shelf.url} (step {entry.step!r}): other "
                "packages, another processor, or another number of BLAS threads. Go on where it began, or remove the folder"
            )
        return entry.said

    def heard(self, branch: int, step: Step, args: tuple[Any, ...], said: Summary) -> None:
        """Note what a step said."""
        self._new.append(Entry(branch, step.__name__, digest(args), said))

    def memory_of(self, branch: int) -> list[str] | None:
        """Return the files with the memory of a branch; None where it had none."""
        return None if self._found is None else self._found.memory.get(branch)

    def taken_back(self, blocks: Blocks, names: list[str]) -> Blocks:
        """Return blocks with the memory in these files, which depends on nothing that was before."""
        fresh = blocks.fresh()
        fresh.reduce(restore_memory, self._shelf, names)
        return fresh

    # ---- writing -------------------------------------------------------------------------------------------------------

    def round_done(self, rounds: int | None, seconds: float, *, now: bool = False) -> None:
        """Hear that a round of the solver is done, and write a checkpoint if one is due.

        Parameters
        ----------
        rounds : int or None
            One is due after so many rounds.
        seconds : float
            One is due after so many seconds.
        now : bool, default=False
            One is due in any case.
        """
        self._rounds += 1
        if self.replays or not self._new:
            return
        since = self._rounds - self.rounds
        if now or time.monotonic() - self._written_at >= seconds or (rounds is not None and since >= rounds):
            self._write()

    def _write(self) -> None:
        """Write a checkpoint, and let the blocks' memory depend on it alone. One that cannot be written costs nothing."""
        before = self._found
        branches = dict(self._branches)
        try:
            memory = {}
            for number, branch in branches.items():
                if (held := branch.now()) is not None:
                    memory[number] = held.reduce(save_memory, self._shelf)["names"]
            entries = [tuple(getattr(entry, field.name) for field in fields(Entry)) for entry in self._new]
            journal = [*(before.journal if before else []), self._shelf.put(freeze(entries))]
            number = before.number + 1 if before else 0
            checkpoint = Checkpoint(number, self._rounds, journal, memory)
            write_bytes(self._manifest(number), _sealed(self._fingerprint, checkpoint))
        except InputError as error:
            self._note(f"no checkpoint could be written: {error}")
            self._written_at = time.monotonic()
            return
        for number, names in memory.items():
            branches[number].cut_off(names)
        self._found, self._new = checkpoint, []
        self.rounds, self._written_at = self._rounds, time.monotonic()
        self._tidy(before)

    def _tidy(self, before: Checkpoint | None) -> None:
        """Remove what neither of the last two checkpoints needs."""
        assert self._found is not None
        needed = self._found.files | (before.files if before else set())
        manifests = {self._manifest(c.number).rpartition("/")[2] for c in (self._found, before) if c}
        for name in names_in(self._shelf.url):
            if name not in needed | manifests:
                remove(f"{self._shelf.url}/{name}")

    def remove(self) -> None:
        """Remove all checkpoints, and the folder above where nothing else is in it: the fit is done."""
        remove(self._shelf.url)
        above = self._shelf.url.rpartition("/")[0]
        if not names_in(above):
            remove(above)

    # ---- reading -------------------------------------------------------------------------------------------------------

    def _manifest(self, number: int) -> str:
        return f"{self._shelf.url}/{MANIFEST}{number:06d}.json"

    def _newest_whole(self, blocks: Blocks) -> Checkpoint | None:
        """Return the newest checkpoint that is what was written."""
        for name in sorted((n for n in names_in(self._shelf.url) if n.startswith(MANIFEST)), reverse=True):
            try:
                checkpoint = self._opened(read_bytes(f"{self._shelf.url}/{name}"))
                for file in checkpoint.journal:
                    self._shelf.get(file)
                broken = [
                    b
                    for names in checkpoint.memory.values()
                    for b in blocks.fresh().reduce(look_through, self._shelf, names)["broken"]
                ]
                if not broken:
                    return checkpoint
                why = broken[0]
            except _OtherFit:
                raise
            except (InputError, ValueError, KeyError, TypeError) as error:
                why = str(error)
            self._note(f"{name} is corrupt ({why}); the checkpoint before it is used, if there is one")
        return None

    def _opened(self, data: bytes) -> Checkpoint:
        sealed = json.loads(data)
        content = sealed["content"]
        if sealed["sha256"] != _sha256(content):
            raise ValueError("its checksum is wrong")
        if content["format"] != FORMAT:
            raise _OtherFit(
                f"the checkpoint at {self._shelf.url} has format {content['format']}; this version reads {FORMAT}"
            )
        if content["fingerprint"] != self._fingerprint:
            there, here = (json.dumps(f, sort_keys=True) for f in (content["fingerprint"], self._fingerprint))
            raise _OtherFit(
                f"the checkpoint at {self._shelf.url} is of another fit. There: {there}. Here: {here}. Give this one another id, "
                "or remove the folder"
            )
        memory = {int(branch): names for branch, names in content["memory"].items()}
        return Checkpoint(content["number"], content["rounds"], content["journal"], memory)


class _OtherFit(InputError):
    """The checkpoint is whole, but not of this fit."""


class JournalledBlocks(Blocks):
    """Blocks whose steps are answered from a journal as long as it lasts, and then noted in it."""

    def __init__(self, journal: Journal, inner: Blocks, *, held: bool = False):
        super().__init__(inner.infos)
        self._journal, self._inner = journal, inner
        self._behind = journal.replays  # its blocks have not the memory yet that the journal speaks of
        self._held = held  # whether its blocks have any memory
        self._number = journal.enter(self)

    def fresh(self) -> "JournalledBlocks":
        """Return the same blocks with empty memory."""
        other = JournalledBlocks(self._journal, self._inner.fresh())
        other._ranges = self._ranges
        return other

    def fork(self) -> "JournalledBlocks":
        """Return the same blocks with the memory they have now."""
        if not self._journal.replays:
            self.now()
        return JournalledBlocks(self._journal, self._inner.fork(), held=self._held)

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Answer from the journal, or run the step."""
        if self._journal.replays:
            self._held = True
            return self._journal.answer(self._number, step, args)
        self.now()
        said = self._inner.reduce(step, *args)
        self._held = True
        self._journal.heard(self._number, step, args, said)
        return said

    def exchange(self, cut: Step, join: Callable[..., Block], n_blocks: int) -> "JournalledBlocks":
        """Return new blocks, each made of one piece of every block; this is done again when a fit goes on."""
        return JournalledBlocks(self._journal, self._inner.exchange(cut, join, n_blocks))

    def now(self) -> Blocks | None:
        """Return the blocks with the memory they should have by now; None where they have none."""
        if self._behind:
            names = self._journal.memory_of(self._number)
            if names is not None:
                self._inner, self._held = self._journal.taken_back(self._inner, names), True
            self._behind = False
        return self._inner if self._held else None

    def cut_off(self, names: list[str]) -> None:
        """Let the memory be what was written, and no longer the outcome of all steps so far."""
        self._inner = self._journal.taken_back(self._inner, names)


def digest(tree: Any) -> str:
    """Return a digest of a step's arguments: the bytes of arrays and numbers, the names of functions and classes."""
    found = hashlib.sha256()
    _feed(tree, found.update)
    return found.hexdigest()[:16]


def _feed(tree: Any, update: Callable[[bytes], None]) -> None:
    update(type(tree).__name__.encode())
    if isinstance(tree, np.ndarray | np.generic):
        array = np.asarray(tree)
        update(f"{array.dtype}{array.shape}".encode())
        update(np.ascontiguousarray(array).tobytes())
    elif isinstance(tree, list | tuple):
        for item in tree:
            _feed(item, update)
    elif isinstance(tree, dict):
        for key, item in tree.items():
            _feed((key, item), update)
    elif is_dataclass(tree) and not isinstance(tree, type):
        for field in fields(tree):
            _feed(getattr(tree, field.name), update)
    elif isinstance(tree, bool | int | float | str) or tree is None:
        update(repr(tree).encode())
    else:
        update(getattr(tree, "__qualname__", "").encode())


def _sealed(fingerprint: dict[str, Any], checkpoint: Checkpoint) -> bytes:
    content = {"format": FORMAT, "fingerprint": fingerprint} | {
        field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)
    }
    content["memory"] = {str(branch): names for branch, names in checkpoint.memory.items()}
    return json.dumps({"sha256": _sha256(content), "content": content}).encode()


def _sha256(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
