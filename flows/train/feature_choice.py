"""Chooses the feature map of a model with `features: auto`, and lam unless it is given, by folds of the training rows."""

from dataclasses import dataclass
from typing import Any

from aucdist.engine.classes import AnyBlocks
from aucdist.report.text import parameters_text, value_text
from aucdist.search import auto
from flows.config.model import ModelConfig
from flows.json_values import jsonable
from flows.progress.console import RunObserver, Tasks


@dataclass(frozen=True)
class FeatureChoice:
    """A model with the feature map that folds have chosen, and what was tried, as ``aucdist cv --json`` prints a search."""

    model: ModelConfig
    search: dict[str, Any]


def choose_features(model: ModelConfig, rows: AnyBlocks, missing: bool, observer: RunObserver) -> FeatureChoice:
    """Choose the feature map of a model with `features: auto`: see `aucdist.search.auto.choose_features`."""

    def done(number: int, n_tasks: int, point: dict[str, Any]) -> None:
        observer.tasks(Tasks(number, n_tasks, 0, f"features {value_text(point.get('features'))}", None))

    search = auto.choose_features(
        model.built, rows, missing=missing, lam=model.lam, metric=model.features_metric, note=observer.note, done=done
    )
    observer.note(f"{search.summary['folds']['number']} folds chose {parameters_text(search.parameters)}")
    return FeatureChoice(model.with_parameters(search.parameters), jsonable(search.summary))
