"""Runs of training and searches inside the test process, which print nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from sklearn.base import clone

from aucdist.selection import fold_numbers
from flows.config.loading import load_config
from flows.cv.config import CvConfig
from flows.cv.run import cross_validate
from flows.progress import LineObserver
from flows.train.config import TrainConfig
from flows.train.run import train

QUIET = LineObserver(lambda text: None)


class Following(LineObserver):
    """Keeps the lines of a run, and calls a function with the record of each round."""

    def __init__(self, action: Callable[[dict[str, Any]], Any] = lambda record: None) -> None:
        self.lines: list[str] = []
        super().__init__(self.lines.append)
        self._action = action

    def on(self, event: str, facts: dict[str, Any]) -> None:
        """Write the event, and of a round call the function."""
        super().on(event, facts)
        if event == "round":
            self._action(facts)


def trained(config: object, *settings: str, output: object = None, observer: LineObserver = QUIET) -> dict[str, Any]:
    """Return the result of a training run of a configuration, a path or a name in ``configs/train``."""
    return train(load_train(str(config), settings, None if output is None else str(output)), observer)


def load_train(config: str, settings: Sequence[str] = (), output: str | None = None) -> TrainConfig:
    """Read a training configuration, a path or a name in ``configs/train``."""
    return load_config(TrainConfig, "train", config, settings, output)


def load_cv(config: str, settings: Sequence[str] = (), output: str | None = None) -> CvConfig:
    """Read the configuration of a search, a path or a name in ``configs/cv``."""
    return load_config(CvConfig, "cv", config, settings, output)


def searched(config: object, *settings: str, output: object = None, observer: LineObserver = QUIET) -> dict[str, Any]:
    """Return the result of a search of a configuration, a path or a name in ``configs/cv``."""
    return cross_validate(load_cv(str(config), settings, None if output is None else str(output)), observer)


def write_config(folder: Path, table: pd.DataFrame, source: dict[str, Any], data: Any = None, **content: Any) -> Path:
    """Write a table as CSV and the configuration of a run on it in one process, and return the configuration.

    `source`, `data` and `content` are keys of the source, of `data`, and of the configuration.
    """
    table.to_csv(folder / "rows.csv", index=False)
    source = {"source": str(folder / "rows.csv"), "format": "csv"} | source
    content = {"name": "rows", "data": {"source": source} | (data or {}), "cluster": "none"} | content
    (folder / "config.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return folder / "config.yaml"


def page_of(result: dict[str, Any]) -> str:
    """Return the report of a run, with usual spaces."""
    return Path(result["run"], "report.html").read_text(encoding="utf-8").replace("\u00a0", " ").replace("&nbsp;", " ")


def unseen_scores(model: Any, X: np.ndarray, y: np.ndarray, row_id: np.ndarray) -> np.ndarray:
    """Return the scores X w of each row from a model of the other folds, in the units of the model of all rows."""

    def scores_of(rows: np.ndarray) -> np.ndarray:
        fitted = clone(model).fit(X[rows], y[rows])
        return fitted.decision_function(X) - fitted.decision_intercept

    folds, scores, of_all = fold_numbers(row_id, y, 5, 0), np.empty(len(y)), scores_of(np.arange(len(y)))
    for number in range(5):
        seen, own = folds != number, scores_of(folds != number)
        units = of_all.std() / own[seen].std()
        scores[~seen] = of_all.mean() + units * (own[~seen] - own[seen].mean())
    return scores
