"""Checkpoints of a training run: where they are, when they are written, and how a terminated run writes a last one."""

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aucdist import __version__
from aucdist.class_models import class_folder
from aucdist.data.storage.files import names_in, remove
from aucdist.engine.blocks import Blocks
from aucdist.engine.checkpoint import Journal
from aucdist.engine.classes import AnyBlocks, ClassBlocks, of_all_classes
from aucdist.errors import ClusterLost
from flows.config.checkpoint import CheckpointConfig
from flows.config.model import ModelConfig
from flows.progress.console import RunObserver
from flows.train.config import TrainConfig

GRACE = 20
"""Seconds that the current round may still take after SIGTERM; Kubernetes kills after 30."""


class Termination:
    """Delays SIGTERM until a round is done and its checkpoint is written.

    `terminate`, callable or None: ends the process, once a SIGTERM has come.
    """

    def __init__(self) -> None:
        self.terminate: Callable[[], None] | None = None

    @contextmanager
    def after_round(self) -> Iterator[None]:
        """Delay SIGTERM for `GRACE` seconds at most."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread handles signals
            return
        before = signal.getsignal(signal.SIGTERM)

        def terminate() -> None:
            signal.signal(signal.SIGTERM, before)
            signal.alarm(0)
            os.kill(os.getpid(), signal.SIGTERM)

        def on_sigterm(number: int, frame: Any) -> None:
            if self.terminate is not None:  # the second SIGTERM
                terminate()
            self.terminate = terminate
            signal.alarm(GRACE)

        alarm_before = signal.signal(signal.SIGALRM, lambda number, frame: terminate())
        signal.signal(signal.SIGTERM, on_sigterm)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, alarm_before)
            signal.signal(signal.SIGTERM, before)


class CheckpointStore:
    """The checkpoints of one fit: its journal, and when the next one is due.

    `blocks`, Blocks: the blocks to fit to, which record what a checkpoint needs.
    """

    def __init__(self, journal: Journal, config: CheckpointConfig, termination: Termination | None = None):
        self._journal, self._config = journal, config
        self._termination = Termination() if termination is None else termination
        self.blocks: Blocks = journal.blocks

    def round_done(self, last: bool = False) -> None:
        """Write a checkpoint if one is due, or this is the `last` round; after SIGTERM write one in any case, and terminate."""
        terminate = self._termination.terminate
        self._journal.round_done(self._config.rounds, self._config.seconds, now=last or terminate is not None)
        if terminate is not None and threading.current_thread() is threading.main_thread():
            terminate()

    def remove(self) -> None:
        """Remove the checkpoints, once the run folder is complete."""
        self._journal.remove()

    def finish_round_on_sigterm(self) -> AbstractContextManager[None]:
        """Delay SIGTERM until the round is done and its checkpoint is written, for `GRACE` seconds at most."""
        return self._termination.after_round()


class ClassCheckpoints:
    """The checkpoints of the fits of several classes, each in a folder of its own.

    A class whose fit has ended has a checkpoint of its last round: a run that resumes takes no rounds for it.

    `identity`: what decides the bits, but for the class.
    `blocks`: the rows to fit to, as of `CheckpointStore`.
    """

    def __init__(
        self,
        url: str,
        identity: dict[str, Any],
        train: ClassBlocks,
        config: CheckpointConfig,
        note: Callable[[str], None],
    ):
        self._url, self._identity, self._config, self._note = url, identity, config, note
        self._names = train.sets.names()
        self.blocks = replace(train, follow=self.follow)
        self._stores: dict[str, CheckpointStore] = {}
        self._termination = Termination()

    def follow(self, k: int, blocks: Blocks) -> Blocks:
        """Return the rows of a class as blocks that record what its checkpoints need."""
        name = self._names[k]

        def note(text: str) -> None:
            self._note(f"class {name!r}: {text}")

        journal = Journal(f"{self._url}/{class_folder(k)}", {**self._identity, "class": name}, blocks, note)
        if blocks.unmapped is not blocks:
            journal.blocks._unmapped, journal.blocks.feature_map = blocks.unmapped, blocks.feature_map
        self._stores[name] = CheckpointStore(journal, self._config, self._termination)
        return journal.blocks

    def round_done(self, name: str, last: bool) -> None:
        """Count a round of the class of this name, as `CheckpointStore.round_done` does."""
        self._stores[name].round_done(last)

    def finish_round_on_sigterm(self) -> AbstractContextManager[None]:
        """Delay SIGTERM until the classes in work have written checkpoints, for `GRACE` seconds at most."""
        return self._termination.after_round()

    def remove(self) -> None:
        """Remove the checkpoints, once the run folder is complete."""
        for store in self._stores.values():
            store.remove()
        above = self._url.rpartition("/")[0]
        if not names_in(above):
            remove(above)


def open_checkpoints(
    config: Any, model: ModelConfig, fingerprint: str, train: AnyBlocks, observer: RunObserver
) -> CheckpointStore | ClassCheckpoints | None:
    """Open the checkpoints of a fit, which may resume from them; None if the configuration asks for none.

    `config`: of training, or of a search, whose last fit has none.
    `model`: what is fitted; not that of the configuration where its features are chosen first.
    `observer`: is called with whether the fit resumes.
    Raises InputError if the folder holds checkpoints of another fit.
    """
    if getattr(config, "checkpoint", None) is None:
        return None
    identity = _identity(config, model, fingerprint, of_all_classes(train))
    if isinstance(train, ClassBlocks):
        return ClassCheckpoints(_url(config, identity), identity, train, config.checkpoint, observer.note)
    return CheckpointStore(Journal(_url(config, identity), identity, train, observer.note), config.checkpoint)


def _identity(config: TrainConfig, model: ModelConfig, fingerprint: str, train: Blocks) -> dict[str, Any]:
    """Return what decides the bits of a fit."""
    return {
        "aucdist": __version__,
        "data": fingerprint,
        "encoding": _digest(config.data.model_dump(mode="json")),
        "blocks": f"{train.n_blocks} {_digest([(i.n_samples, i.n_pos, i.weight_pos) for i in train.infos])}",
        "estimator": model.estimator,
        "parameters": {
            key: repr(v) for key, v in model.built.plain_params().items() if v is not None and key != "verbose"
        },
    }


def _url(config: TrainConfig, identity: dict[str, Any]) -> str:
    """Return the folder of the checkpoints of a fit."""
    assert config.checkpoint is not None
    return f"{_folder(config)}/{config.checkpoint.id or f'{config.name}-{_digest(identity)}'}"


def retry_lost_cluster(config: TrainConfig, work: Callable[[], Any], observer: RunObserver) -> Any:
    """Return the result of work on a cluster; if the cluster is lost, repeat it: the fit resumes from its last checkpoint.

    Raises ClusterLost if there are no checkpoints, or if the last attempt lost its cluster too.
    """
    attempts = 1 if config.checkpoint is None else config.checkpoint.attempts
    for attempt in range(1, attempts):
        try:
            return work()
        except ClusterLost as error:
            observer.note(f"{error}; attempt {attempt + 1} of {attempts}")
    return work()


def _folder(config: TrainConfig) -> str:
    assert config.checkpoint is not None
    scratch = getattr(config.cluster, "scratch", None)
    url = config.checkpoint.url or (
        f"{scratch.rstrip('/')}/checkpoints" if scratch else f"{config.output}/.checkpoints"
    )
    return url.rstrip("/") if "://" in url else str(Path(url).absolute())


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
