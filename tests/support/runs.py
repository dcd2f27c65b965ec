"""Runs of training and searches inside the test process, which print nothing."""

from pathlib import Path
from typing import Any

from support.searches import load_cv

from flows.cv.run import cross_validate
from flows.progress.console import LineObserver
from flows.train.config import load_train
from flows.train.run import train

QUIET = LineObserver(lambda text: None)


def trained(config: object, *settings: str, output: object = None, observer: LineObserver = QUIET) -> dict[str, Any]:
    """Return the result of a training run of a configuration, a path or a name in ``configs/train``."""
    return train(load_train(str(config), settings, None if output is None else str(output)), observer)


def searched(config: object, *settings: str, output: object = None, observer: LineObserver = QUIET) -> dict[str, Any]:
    """Return the result of a search of a configuration, a path or a name in ``configs/cv``."""
    return cross_validate(load_cv(str(config), settings, None if output is None else str(output)), observer)


def page_of(result: dict[str, Any]) -> str:
    """Return the report of a run."""
    return Path(result["run"], "report.html").read_text(encoding="utf-8")
