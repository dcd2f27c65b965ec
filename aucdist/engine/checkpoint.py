"""Checkpoints of a fit, from which an interrupted fit resumes and ends with the same result.

What a solver does depends only on its parameters and on the summaries of its steps. Therefore, the state of a solver need not
be stored. A journal keeps the summary of each step. A resumed fit runs the same solver again, which gets its summaries from the
journal without reading any rows. When the journal ends, the blocks get back the memory that was written with it, and further
steps run on the rows.

`aucdist.data.serialization` serializes journals and memories without any loss.
"""

import itertools
import json
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from aucdist.data.own_files import NO_MORE_KEYS, Count, FileName, parse_checked, read_sealed, write_sealed
from aucdist.data.serialization import deserialize, digest, serialize
from aucdist.data.storage.faults import long_retries
from aucdist.data.storage.files import exists, names_in, read_bytes, remove, sha256_of, write_bytes
from aucdist.engine.blocks import Blocks, Step, Summary, without_rows
from aucdist.errors import InputError, Json, RunError

JOURNAL_FORMAT = 4
"""The version of the format. Increase it if a solver takes other steps, or if a step or a record in its arguments is renamed,
because a fit cannot resume from such a journal."""
MANIFEST = "checkpoint-"


@dataclass(frozen=True)
class CheckpointFolder:
    """A folder, or a prefix of an object store, whose files are named after their content. This object is sent to the workers."""

    url: str

    def put(self, data: bytes) -> str:
        """Write a file unless it exists, and return its name."""
        name = f"{sha256_of(data)}.npz"
        with long_retries():
            if not exists(f"{self.url}/{name}"):
                write_bytes(f"{self.url}/{name}", data)
        return name

    def get(self, name: str) -> bytes:
        """Read a file.

        Raises
        ------
        InputError
            If it does not exist, or has another content than was written.
        """
        with long_retries():
            data = read_bytes(f"{self.url}/{name}")
        if name != f"{sha256_of(data)}.npz":
            raise InputError(
                f"{self.url}/{name} is damaged (its checksum is wrong): remove the folder, and start the fit again"
            )
        return data


class Entry(NamedTuple):
    """One reduction: the branch of the blocks on which it ran, the name of the step, a digest of its arguments, and its sum."""

    branch: int
    step: str
    digest: str
    summary: Summary


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint: the content of its manifest.

    Attributes
    ----------
    fingerprint : dict
        The fingerprint of the fit.
    rounds : int
        The number of rounds of the solver so far.
    journal : list of str
        The files with the entries, in order.
    memory : dict
        The files with the memory of the blocks of each branch, by the number of the branch.
    """

    __pydantic_config__ = NO_MORE_KEYS
    fingerprint: Json
    number: Count
    rounds: Count
    journal: list[FileName]
    memory: dict[str, list[FileName]]
    format: int = JOURNAL_FORMAT

    @property
    def files(self) -> set[str]:
        """All files that the checkpoint needs."""
        return {*self.journal, *(name for names in self.memory.values() for name in names)}


@without_rows
def save_memory(number: int, memory: Any, folder: CheckpointFolder) -> Summary:
    """Write each block's memory to a file."""
    return [folder.put(serialize(memory))]


@without_rows
def restore_memory(number: int, memory: None, folder: CheckpointFolder, names: list[str]) -> tuple[Any, Summary]:
    """Read each block's memory from its file."""
    return deserialize(folder.get(names[number])), 0


class Journal:
    """The journal of a fit's reductions, and the checkpoints made from it.

    Parameters
    ----------
    url : str
        A folder of this fit only, as a path or an fsspec URL, which every worker can read and write.
    fingerprint : dict
        Everything that determines the result, as JSON values: data, blocks, model, version. A checkpoint with another
        fingerprint is an error.
    blocks : Blocks
        The rows to fit.
    note : callable
        ``note(text)`` is called with messages for the user.

    Attributes
    ----------
    blocks : Blocks
        The blocks to fit the estimator on.
    checkpoint : Checkpoint or None
        The newest checkpoint.
    rounds : int
        The number of rounds in the checkpoint from which this fit resumes; 0 if there is none.

    Raises
    ------
    InputError
        If the checkpoints in the folder belong to another fit. The message shows both fingerprints.
    """

    def __init__(self, url: str, fingerprint: Json, blocks: Blocks, note: Callable[[str], None]):
        self.folder, self._fingerprint, self._note = CheckpointFolder(url.rstrip("/")), fingerprint, note
        self.branches: weakref.WeakValueDictionary[int, JournalledBlocks] = weakref.WeakValueDictionary()
        self.numbers, self._rounds, self._written_at = itertools.count(), 0, time.monotonic()
        self.entries: deque[Entry] = deque()
        self.new: list[Entry] = []
        self.checkpoint = self._newest_intact(blocks)
        if self.checkpoint is not None:
            note(f"resumes from the checkpoint of round {self.checkpoint.rounds}")
        self.rounds = 0 if self.checkpoint is None else self.checkpoint.rounds
        self.blocks = JournalledBlocks(self, blocks)

    # ---- called by the blocks -------------------------------------------------------------------------------------------

    @property
    def replays(self) -> bool:
        """Whether summaries still come from the journal."""
        return bool(self.entries)

    def restored(self, blocks: Blocks, names: list[str]) -> Blocks:
        """Return the blocks with the memory in these files. It no longer depends on earlier steps."""
        restored = blocks.without_memory()
        restored.reduce(restore_memory, self.folder, names)
        return restored

    # ---- writing -------------------------------------------------------------------------------------------------------

    def round_done(self, rounds: int | None, seconds: float, *, now: bool = False) -> None:
        """Count a round of the solver. If a checkpoint is due, write it and restore the blocks' memory from it.

        If the checkpoint cannot be written, the fit continues without it.

        Parameters
        ----------
        rounds : int or None
            The number of rounds after which a checkpoint is due.
        seconds : float
            The number of seconds after which a checkpoint is due.
        now : bool, default=False
            Whether a checkpoint is due in any case.
        """
        self._rounds += 1
        if self.replays or not self.new:
            return
        since = self._rounds - self.rounds
        due = now or time.monotonic() - self._written_at >= seconds or (rounds is not None and since >= rounds)
        if not due:
            return
        before = self.checkpoint
        branches = dict(self.branches)
        try:
            memory = {}
            for number, branch in branches.items():
                if (blocks := branch.with_memory()) is not None:
                    memory[str(number)] = blocks.reduce(save_memory, self.folder)
            entries = [tuple(entry) for entry in self.new]
            journal = [*(before.journal if before else []), self.folder.put(serialize(entries))]
            number = before.number + 1 if before else 0
            checkpoint = Checkpoint(self._fingerprint, number, self._rounds, journal, memory)
            write_sealed(self._manifest(number), asdict(checkpoint))
        except InputError as error:
            self._note(f"no checkpoint could be written: {error}")
            self._written_at = time.monotonic()
            return
        for branch_number, names in memory.items():
            branch = branches[int(branch_number)]
            branch._inner = self.restored(branch._inner, names)
        self.checkpoint, self.new = checkpoint, []
        self.rounds, self._written_at = self._rounds, time.monotonic()
        # These files are needed by neither of the last two checkpoints.
        kept = [checkpoint] if before is None else [checkpoint, before]
        needed: set[str] = set().union(*(c.files | {self._manifest(c.number).rpartition("/")[2]} for c in kept))
        for name in names_in(self.folder.url):
            if name not in needed:
                remove(f"{self.folder.url}/{name}")

    # ---- reading -------------------------------------------------------------------------------------------------------

    def _manifest(self, number: int) -> str:
        return f"{self.folder.url}/{MANIFEST}{number:06d}.json"

    def _newest_intact(self, blocks: Blocks) -> Checkpoint | None:
        """Return the newest undamaged checkpoint, and use its entries."""
        for name in sorted((n for n in names_in(self.folder.url) if n.startswith(MANIFEST)), reverse=True):
            try:
                content = read_sealed(f"{self.folder.url}/{name}")
                if content["format"] != JOURNAL_FORMAT:
                    raise _DifferentFit(
                        f"the checkpoint at {self.folder.url} has format {content['format']}, not {JOURNAL_FORMAT}, so another "
                        "version of aucdist began this fit: end it with that version, or remove the folder"
                    )
                checkpoint = parse_checked(json.dumps(content).encode(), Checkpoint, "the manifest")
                if checkpoint.fingerprint != self._fingerprint:
                    stored, here = (json.dumps(f, sort_keys=True) for f in (checkpoint.fingerprint, self._fingerprint))
                    raise _DifferentFit(
                        f"the checkpoint at {self.folder.url} is of another fit. There: {stored}. Here: {here}. Give this one "
                        "another id, or remove the folder"
                    )
                entries = [Entry(*entry) for file in checkpoint.journal for entry in deserialize(self.folder.get(file))]
                for names in checkpoint.memory.values():
                    self.restored(blocks, names)
                self.entries.extend(entries)
                return checkpoint
            except _DifferentFit:
                raise
            # The file has unknown fields, or is of another kind.
            except (ValueError, TypeError, LookupError) as error:
                self._note(f"{name} is corrupt ({error}); the checkpoint before it is used, if there is one")
        return None


class _DifferentFit(InputError):
    """The checkpoint is intact but belongs to another fit."""


class JournalledBlocks(Blocks):
    """Blocks whose reductions come from a journal until it ends. Further reductions are added to the journal."""

    def __init__(self, journal: Journal, inner: Blocks, *, has_memory: bool = False):
        super().__init__(inner.infos)
        self.feature_names = inner.feature_names
        if inner.unmapped is not inner:
            self.set_feature_map(inner.feature_map, inner.unmapped)
        self._journal, self._inner = journal, inner
        # During the replay, the blocks do not have the memory of the replayed steps.
        self._memory_due = journal.replays
        self._has_memory = has_memory
        self._number = next(journal.numbers)  # A resumed solver creates its branches in the same order.
        journal.branches[self._number] = self

    def without_memory(self) -> "JournalledBlocks":
        """Return the same blocks with empty memory."""
        other = JournalledBlocks(self._journal, self._inner.without_memory())
        other._ranges = self._ranges
        return other

    def fork(self) -> "JournalledBlocks":
        """Return the same blocks with the memory they have now."""
        if not self._journal.replays:
            self.with_memory()
        return JournalledBlocks(self._journal, self._inner.fork(), has_memory=self._has_memory)

    def reduce(self, step: Step, *args: Any) -> Summary:
        """Return the summary from the journal, or run the step."""
        journal, key = self._journal, (self._number, step.__name__, digest(args))
        if journal.replays:
            self._has_memory = True
            entry = journal.entries.popleft()
            if key != entry[:3]:
                raise RunError(
                    f"this fit does not repeat the one of the checkpoint at {journal.folder.url} (step {entry.step!r}). "
                    "Another version of aucdist, other packages, another processor or another number of BLAS threads began it. "
                    "Resume where the fit began, or remove the folder"
                )
            return entry.summary
        self.with_memory()
        summary = self._inner.reduce(step, *args)
        self._has_memory = True
        journal.new.append(Entry(*key, summary))
        return summary

    def with_memory(self) -> Blocks | None:
        """Return the blocks with the memory of all steps so far, or None if they have none."""
        if self._memory_due:
            checkpoint = self._journal.checkpoint
            names = None if checkpoint is None else checkpoint.memory.get(str(self._number))
            if names is not None:
                self._inner, self._has_memory = self._journal.restored(self._inner, names), True
            self._memory_due = False
        return self._inner if self._has_memory else None
