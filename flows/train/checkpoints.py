"""Checkpoints of a training run: where they lie, when they are written, and that a run which is terminated writes one first."""

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aucdist.engine.blocks import Blocks
from aucdist.engine.checkpoint import Journal
from aucdist.errors import ClusterLost
from flows.config.checkpoint import CheckpointConfig
from flows.progress.console import RunObserver

if TYPE_CHECKING:
    from flows.train.config import TrainConfig

GRACE = 20
"""Seconds that a round may still take when the run is terminated; Kubernetes kills after 30."""


class CheckpointStore:
    """What keeps a fit: its journal, and when a checkpoint is due.

    Attributes
    ----------
    blocks : Blocks
        What the estimator is to be given.
    """

    def __init__(self, journal: Journal, config: CheckpointConfig):
        self._journal, self._config = journal, config
        self._leave: Callable[[], None] | None = None
        self.blocks: Blocks = journal.blocks

    def round_done(self) -> None:
        """Hear that a round is done: write a checkpoint if one is due, and leave if the run is terminated."""
        leave = self._leave
        self._journal.round_done(self._config.rounds, self._config.seconds, now=leave is not None)
        if leave is not None:
            leave()

    def remove(self) -> None:
        """Remove the checkpoints: the run folder is there."""
        self._journal.remove()

    @contextmanager
    def until_the_round_ends(self) -> Iterator[None]:
        """Let SIGTERM wait for the end of the round and for a checkpoint, but for `GRACE` seconds at most."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are the main thread's
            return
        before = signal.getsignal(signal.SIGTERM)

        def leave() -> None:
            signal.signal(signal.SIGTERM, before)
            signal.alarm(0)
            os.kill(os.getpid(), signal.SIGTERM)

        def asked(number: int, frame: Any) -> None:
            if self._leave is not None:  # for the second time
                leave()
            self._leave = leave
            signal.alarm(GRACE)

        alarmed = signal.signal(signal.SIGALRM, lambda number, frame: leave())
        signal.signal(signal.SIGTERM, asked)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, alarmed)
            signal.signal(signal.SIGTERM, before)


def keep(config: "TrainConfig", fingerprint: str, train: Blocks, observer: RunObserver) -> CheckpointStore | None:
    """Open the checkpoints of a fit, or make a place for them; None where there are to be none.

    Parameters
    ----------
    config : TrainConfig
    fingerprint : str
        Of the data.
    train : Blocks
        The training rows where they are.
    watch : Watch

    Raises
    ------
    InputError
        If the place holds checkpoints of another fit.
    """
    if config.checkpoint is None:
        return None
    about = {
        "aucdist": version("aucdist"),
        "data": fingerprint,
        "encoding": _digest(config.data.model_dump(mode="json")),
        "blocks": f"{train.n_blocks} {_digest([(i.n_samples, i.n_pos, i.weight_pos) for i in train.infos])}",
        "estimator": config.model.estimator,
        "parameters": {key: repr(v) for key, v in config.model.built.get_params().items() if v is not None},
    }
    place = f"{_folder(config)}/{config.checkpoint.id or f'{config.name}-{_digest(about)}'}"
    return CheckpointStore(Journal(place, about, train, observer.note), config.checkpoint)


def retry_lost_cluster(config: "TrainConfig", work: Callable[[], Any], observer: RunObserver) -> Any:
    """Do some work on a cluster, and once more if the cluster is lost: a fit with checkpoints then goes on where it was.

    Raises
    ------
    ClusterLost
        If there are no checkpoints, or if the last attempt lost its cluster, too.
    """
    attempts = 1 if config.checkpoint is None else config.checkpoint.attempts
    for attempt in range(1, attempts):
        try:
            return work()
        except ClusterLost as error:
            observer.note(f"{error}; attempt {attempt + 1} of {attempts}")
    return work()


def _folder(config: "TrainConfig") -> str:
    assert config.checkpoint is not None
    scratch = getattr(config.cluster, "scratch", None)
    url = config.checkpoint.url or (
        f"{scratch.rstrip('/')}/checkpoints" if scratch else f"{config.output}/.checkpoints"
    )
    return url.rstrip("/") if "://" in url else str(Path(url).absolute())


def _digest(thing: Any) -> str:
    return hashlib.sha256(json.dumps(thing, sort_keys=True).encode()).hexdigest()[:16]
