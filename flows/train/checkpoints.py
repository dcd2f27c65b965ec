"""Checkpoints of a training run: where they are, when they are written, and how a terminated run writes a last one."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from aucdist import __version__
from aucdist.data.own_files import json_digest
from aucdist.data.storage.files import absolute, names_in, remove
from aucdist.engine.blocks import Blocks
from aucdist.engine.checkpoint import Journal
from aucdist.engine.view import AnyBlocks, ClassBlocks
from aucdist.errors import Json
from flows.config.cluster import CheckpointConfig
from flows.config.model import ModelConfig
from flows.progress.console import RunObserver

GRACE = 20
"""Seconds that the current round may still take after SIGTERM; Kubernetes kills after 30."""


class Checkpoints:
    """The checkpoints of the fits of a run: of two classes those of one fit, of several one for each class, in its own folder.

    A class whose fit has ended has a checkpoint of its last round: a run that resumes takes no rounds for it.

    `identity`: what decides the bits, but for the class.
    `blocks`: the rows to fit to, which record what a checkpoint needs.
    """

    def __init__(
        self, url: str, identity: Json, train: AnyBlocks, config: CheckpointConfig, note: Callable[[str], None]
    ):
        self._url, self._identity, self._config, self._note = url, identity, config, note
        self._journals: dict[str, Journal] = {}
        self._terminate: Callable[[], None] | None = None  # ends the process after a SIGTERM
        self._names = train.sets.names() if isinstance(train, ClassBlocks) else []
        self.blocks: AnyBlocks = (
            replace(train, follow=self._follow) if isinstance(train, ClassBlocks) else self._follow(None, train)
        )

    def _follow(self, k: int | None, blocks: Blocks) -> Blocks:
        """Return rows as blocks that record what a checkpoint needs; `k`: the class, of several."""
        name, url, identity = "", self._url, self._identity
        if k is not None:
            name, url = self._names[k], f"{url}/class-{k:05d}"
            identity = identity | {"class": name}

        def note(text: str) -> None:
            self._note(f"class {name!r}: {text}" if name else text)

        journal = self._journals[name] = Journal(url, identity, blocks, note)
        if blocks.unmapped is not blocks:
            journal.blocks._unmapped, journal.blocks.feature_map = blocks.unmapped, blocks.feature_map
        return journal.blocks

    def round_done(self, name: str, last: bool) -> None:
        """Write a checkpoint of the class of this name if one is due, this is its `last` round, or a SIGTERM has come.

        After a SIGTERM the main thread then ends the process.
        """
        self._journals[name].round_done(
            self._config.rounds, self._config.seconds, now=last or self._terminate is not None
        )
        if self._terminate is not None and threading.current_thread() is threading.main_thread():
            self._terminate()

    def remove(self) -> None:
        """Remove the checkpoints, once the run folder is complete."""
        for journal in self._journals.values():
            journal.remove()
        above = self._url.rpartition("/")[0]
        if self._names and not names_in(above):
            remove(above)

    @contextmanager
    def finish_round_on_sigterm(self) -> Iterator[None]:
        """Delay SIGTERM until the fits in work have written checkpoints, for `GRACE` seconds at most."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread handles signals
            return
        before = signal.getsignal(signal.SIGTERM)

        def terminate() -> None:
            signal.signal(signal.SIGTERM, before)
            signal.alarm(0)
            signal.raise_signal(signal.SIGTERM)

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
    config: Any, model: ModelConfig, fingerprint: str, train: AnyBlocks, observer: RunObserver
) -> Checkpoints | None:
    """Open the checkpoints of a fit, which may resume from them; None if the configuration asks for none.

    `config`: of training, or of a search, whose last fit has none.
    `model`: what is fitted; not that of the configuration where its features are chosen first.
    `observer`: is called with whether the fit resumes.
    Raises InputError if the folder holds checkpoints of another fit.
    """
    if config.checkpoint is None:
        return None
    blocks = train.of_all()
    identity = {  # what decides the bits of the fit
        "aucdist": __version__,
        "data": fingerprint,
        "encoding": json_digest(config.data.model_dump(mode="json"))[:16],
        "blocks": f"{blocks.n_blocks} {json_digest([(i.n_samples, i.n_pos, i.weight_pos) for i in blocks.infos])[:16]}",
        "estimator": model.estimator,
        "parameters": {
            key: repr(v) for key, v in model.built.plain_params().items() if v is not None and key != "verbose"
        },
    }
    scratch = getattr(config.cluster, "scratch", None)
    folder = config.checkpoint.url or (
        f"{scratch.rstrip('/')}/checkpoints" if scratch else f"{config.output}/.checkpoints"
    )
    url = f"{absolute(folder).rstrip('/')}/{config.checkpoint.id or f'{config.name}-{json_digest(identity)[:16]}'}"
    return Checkpoints(url, identity, train, config.checkpoint, observer.note)
