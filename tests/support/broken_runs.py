"""Runs of `aucdist train` in processes of their own, in whose fits something is to be broken."""

import json
import os
import queue
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml

HERE = Path(sys.executable).parent
ROUNDS = 8
"""The fault comes after so many rounds; a checkpoint is written after every fifth."""

MODEL = {"solver": "all-pairs", "lam": 1e-5, "tol": 0.0, "max_passes": 60}
LONGEST = 300.0


class NotHere(Exception):
    """The fault cannot be made on this machine; the message says why."""


class Run:
    """`aucdist train` in a process of its own."""

    def __init__(self, config: dict[str, Any], folder: Path, **environment: str):
        file = folder / "config.yaml"
        file.write_text(yaml.safe_dump(config))
        self.process = subprocess.Popen(
            [HERE / "aucdist", "train", file, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=folder, env=os.environ | environment,
        )  # fmt: skip
        self.said: list[str] = []
        self._rounds: queue.Queue[int] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if match := re.match(r"\s*round (\d+)", line):
                self._rounds.put(int(match[1]))
        self._rounds.put(sys.maxsize)

    def wait_for_round(self, number: int = ROUNDS) -> None:
        """Wait until the solver has come so far."""
        while (reached := self._rounds.get(timeout=LONGEST)) < number:
            pass
        if reached == sys.maxsize:
            raise RuntimeError(f"the run ended before its round {number}: {''.join(self.said)[-500:]}")

    def workers(self) -> list[int]:
        """Return the process ids of the workers that the run has started."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [c.pid for c in children if "spawn_main" in " ".join(c.cmdline())]

    def weights(self) -> np.ndarray:
        """Wait for the end and return the weights."""
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        if code := self.process.wait(LONGEST):
            raise RuntimeError(f"exit code {code}: {''.join(self.said)[-500:]}")
        weights: np.ndarray = np.load(f"{json.loads(out.splitlines()[-1])['run']}/model/weights.npy")
        return weights


def config(data: str, folder: Path, **more: Any) -> dict[str, Any]:
    """Return the configuration of a run on shards."""
    return {
        "name": "fault",
        "data": {"source": {"source": data, "format": "shards"}},
        "model": MODEL,
        "cluster": {"kind": "local", "workers": 2},
        "checkpoint": {"rounds": 5},
        "output": str(folder / "runs"),
    } | more


def undisturbed(data: str, folder: Path, **more: Any) -> np.ndarray:
    """Return the weights of a run in one process, with nothing broken."""
    folder.mkdir()
    calm = config(data, folder, cluster={"kind": "none"}, **more)
    del calm["checkpoint"]
    return Run(calm, folder).weights()
