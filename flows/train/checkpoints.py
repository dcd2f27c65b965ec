"""Checkpoints of a training run: where they are, when they are written, and how a terminated run writes a last one."""

import hashlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aucdist import __version__
from aucdist.engine.blocks import Blocks
from aucdist.engine.checkpoint import Journal
from aucdist.errors import ClusterLost
from flows.config.checkpoint import CheckpointConfig
from flows.config.model import ModelConfig
from flows.progress.console import RunObserver
from flows.train.config import TrainConfig

GRACE = 20
"""Seconds that the current round may still take after SIGTERM; Kubernetes kills after 30."""


class CheckpointStore:
    """The checkpoints of one fit: its journal, and when the next one is due.

    Attributes
    ----------
    blocks : Blocks
        The blocks to fit to, which record what a checkpoint needs.
    """

    def __init__(self, journal: Journal, config: CheckpointConfig):
        self._journal, self._config = journal, config
        self._terminate: Callable[[], None] | None = None
        self.blocks: Blocks = journal.blocks

    def round_done(self) -> None:
        """Write a checkpoint if one is due; after SIGTERM write one in any case, and terminate."""
        terminate = self._terminate
        self._journal.round_done(self._config.rounds, self._config.seconds, now=terminate is not None)
        if terminate is not None:
            terminate()

    def remove(self) -> None:
        """Remove the checkpoints, once the run folder is complete."""
        self._journal.remove()

    @contextmanager
    def finish_round_on_sigterm(self) -> Iterator[None]:
        """Delay SIGTERM until the round is done and its checkpoint is written, for `GRACE` seconds at most."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread handles signals
            return
        before = signal.getsignal(signal.SIGTERM)

        def terminate() -> None:
            signal.signal(signal.SIGTERM, before)
            signal.alarm(0)
            os.kill(os.getpid(), signal.SIGTERM)

        def on_sigterm(number: int, frame: Any) -> None:
            if self._terminate is not None:  # the second SIGTERM
                terminate()
            self._terminate = terminate
            signal.alarm(GRACE)

        alarm_before = signal.signal(signal.SIGALRM, lambda number, frame: terminate())
        signal.signal(signal.SIGTERM, on_sigterm)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, alarm_before)
            signal.signal(signal.SIGTERM, before)


def open_checkpoints(
    config: TrainConfig, model: ModelConfig, fingerprint: str, train: Blocks, observer: RunObserver
) -> CheckpointStore | None:
    """Open the checkpoints of a fit, which may resume from them; None if the configuration asks for none.

    Parameters
    ----------
    config : TrainConfig
    model : ModelConfig
        What is fitted; not that of the configuration where its features are chosen first.
    fingerprint : str
        Of the data.
    train : Blocks
        The training rows.
    observer : RunObserver
        Is called with whether the fit resumes.

    Raises
    ------
    InputError
        If the folder holds checkpoints of another fit.
    """
    if config.checkpoint is None:
        return None
    identity = {
        "aucdist": __version__,
        "data": fingerprint,
        "encoding": _digest(config.data.model_dump(mode="json")),
        "blocks": f"{train.n_blocks} {_digest([(i.n_samples, i.n_pos, i.weight_pos) for i in train.infos])}",
        "estimator": model.estimator,
        "parameters": {
            key: repr(v) for key, v in model.built.plain_params().items() if v is not None and key != "verbose"
        },
    }
    url = f"{_folder(config)}/{config.checkpoint.id or f'{config.name}-{_digest(identity)}'}"
    return CheckpointStore(Journal(url, identity, train, observer.note), config.checkpoint)


def retry_lost_cluster(config: TrainConfig, work: Callable[[], Any], observer: RunObserver) -> Any:
    """Return the result of work on a cluster; if the cluster is lost, repeat it: the fit resumes from its last checkpoint.

    Raises
    ------
    ClusterLost
        If there are no checkpoints, or if the last attempt lost its cluster too.
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
