"""Runs on a cluster: started by Prefect or from here, followed, and read back."""

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
from support import kubernetes_lab as lab

from aucdist.data.storage.files import read_bytes
from flows.progress import LineObserver
from flows.train import run as pipeline
from flows.train.config import TrainConfig

API = "http://prefect-server.aucdist:4200/api"


class Doing(LineObserver):
    """Follows a run, and does something in each round."""

    def __init__(self, action: Callable[[int], None] = lambda number: None) -> None:
        super().__init__(print)
        self._action = action

    def on(self, event: str, facts: dict[str, Any]) -> None:
        if event == "round":
            self._action(facts["round"])
        super().on(event, facts)


def train(config: dict[str, Any], action: Callable[[int], None] = lambda number: None) -> np.ndarray:
    """Return the weights of a run."""
    result = pipeline.train(TrainConfig.model_validate(config), Doing(action))
    return weights(result["run"])


def weights(run: str) -> np.ndarray:
    w: np.ndarray = np.frombuffer(read_bytes(f"{run}/model/weights.npy"), dtype=np.uint8)
    return w


def start_run(parameters: dict[str, Any]) -> str:
    """Start a run of train-auc/kubernetes and return its id."""
    out = lab.prefect("deployment", "run", "train-auc/kubernetes", "--params", json.dumps({"config": parameters}))
    return next(line.split()[-1] for line in out.splitlines() if "UUID" in line)


def seen_by_prefect(run: str) -> dict[str, Any]:
    """Return a run as the server knows it, whatever server this process knew before."""
    with urllib.request.urlopen(f"{API}/flow_runs/{run}", timeout=30) as answer:
        objects: dict[str, Any] = json.load(answer)
    return objects


def state_of(run: str) -> str:
    return str(seen_by_prefect(run)["state"]["type"])
