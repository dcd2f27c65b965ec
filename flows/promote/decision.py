"""Whether a model is better than the one in use: a paired test on rows that neither was trained on."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from aucdist.data.sources import Source
from aucdist.data.storage.files import exists, read_bytes, shown
from aucdist.drift.performance import Z
from aucdist.errors import InputError
from aucdist.held_out import HeldOutRows, load_with_seen, refuse_trained_on, same_classes, score_labelled
from aucdist.linear_model import LinearModel
from aucdist.metrics.compare import Difference, delong_test, partial_delong_test
from aucdist.model import load_two_classes
from flows.compare.run import read_run
from flows.config.data import DataConfig, source_of
from flows.config.loading import parse_yaml
from flows.json_values import jsonable
from flows.run_folder.folder import model_folder
from flows.run_folder.scores import SCORES, max_fpr_of

LEVEL = 0.95
"""Of the intervals. The two ends leave an equal model a chance of 2.5 % to be promoted by `better`."""
IN_USE = "the version in use"


@dataclass(frozen=True, eq=False)
class Pair:
    """The scores of the same rows by two models.

    `rows`: what they are, in words.
    `y`, `new` and `old`, of shape (n_samples,): labels, the run's scores, and those of the version in use. Of several
        classes ``(n_samples, n_classes)``: which of them a row has, bool, and a score for each.
    """

    rows: str
    y: np.ndarray
    new: np.ndarray
    old: np.ndarray


def decide(
    run: str, in_use: str, condition: str, margin: float, data: tuple[str, Source] | None = None
) -> dict[str, Any]:
    """Test the model of a run against the version in use.

    `run` and `in_use`: the run folder, and the folder of the version.
    `condition`: {"better", "not-worse"}.
    `data`: name and source of the rows; by default the run's test rows.
    Returns the difference, run minus version in use, with its interval; ``holds``; in types of JSON.
    Raises InputError if the rows cannot be read, or a model was trained on some of them.
    """
    new, old = (load_two_classes(url, "this test") for url in (model_folder(run), in_use))
    if not same_classes([new, old]):
        raise InputError(
            f"{shown(run)} and {IN_USE} have other classes, so that their scores say different things: give --if always"
        )
    pair = _on_test_rows(run, in_use) if data is None else on_data(run, in_use, *data)
    max_fpr = max_fpr_of(new, run)
    found = difference(pair, max_fpr)
    bound = margin if condition == "better" else -margin
    calibration = _calibration(pair, new, old)
    worse = calibration is not None and calibration["high"] < -margin
    measure = {"measure": "auc"} if max_fpr is None else {"measure": "partial_auc", "max_fpr": max_fpr}
    n_pos = int((pair.y == 1).sum())
    decision: dict[str, Any] = jsonable(
        asdict(found)
        | measure
        | {"condition": condition, "margin": margin, "rows": len(pair.y), "n_pos": n_pos, "of": pair.rows}
        | {"calibration": calibration, "holds": found.low > bound and not worse}
    )
    return decision


def difference(pair: Pair, max_fpr: float | None) -> Difference:
    """Return the paired test of the two models, run minus version in use: of the AUC, or of the partial AUC up to `max_fpr`."""
    if max_fpr is None:
        return delong_test(pair.y, pair.new, pair.old, LEVEL)
    return partial_delong_test(pair.y, pair.new, pair.old, max_fpr, LEVEL, standardized=True)


def _calibration(pair: Pair, new: LinearModel, old: LinearModel) -> dict[str, Any] | None:
    """Return the difference of the Brier losses, version in use minus run, with its interval; None without probabilities."""
    if new.probability is None or old.probability is None:
        return None
    positive = pair.y == 1
    return brier_difference(
        *(
            (model.probability(scores)[:, 1] - positive) ** 2  # type: ignore[misc]  # both have a map
            for model, scores in ((new, pair.new), (old, pair.old))
        )
    )


def brier_difference(of_new: np.ndarray, of_old: np.ndarray) -> dict[str, Any]:
    """Return the difference of the Brier losses of rows, version in use minus run, with its interval."""
    better = of_old - of_new
    reach = Z * float(better.std(ddof=1)) / math.sqrt(len(better))
    value = float(better.mean())
    of_each = [float(of_new.mean()), float(of_old.mean())]
    return {"measure": "brier_loss", "value": value, "low": value - reach, "high": value + reach, "of_each": of_each}


def _on_test_rows(run: str, in_use: str) -> Pair:
    """Return the scores of the run's test rows."""
    new = read_run(run)
    if exists(f"{in_use}/{SCORES}"):
        old = read_run(in_use)
        same_data = new.about["data"]["fingerprint"] == old.about["data"]["fingerprint"]
        if same_data and np.array_equal(new.row_id, old.row_id) and np.array_equal(new.y, old.y):
            return Pair("the test rows of both runs", new.y, new.scores, old.scores)
        if same_data:
            refuse_other_split(run, new.row_id, old.row_id)
    held_out = read_test_rows(run, in_use, new.row_id, new.y)
    return Pair("the test rows of the run", new.y, new.scores, held_out.scores)


def refuse_other_split(run: str, new: np.ndarray, old: np.ndarray) -> None:
    """Raise an InputError if test rows of a run are not among those of the version in use, which has the same data."""
    if in_training := int(np.count_nonzero(~np.isin(new, old))):
        raise InputError(
            f"{IN_USE} was trained on {in_training:,} of the {len(new):,} test rows of {shown(run)}: the same data was "
            "split in another way. Give both the same `data.test`, name rows that neither model has seen by --data, or give "
            "--if always"
        )


def read_test_rows(run: str, in_use: str, row_id: np.ndarray, y: np.ndarray) -> HeldOutRows:
    """Return the test rows of a run, read again, with their scores by the version in use.

    Raises InputError if they are not those with these ids and labels, or the version in use was trained on some of
        them.
    """
    data = _data_of(run)
    assert data.test is not None  # there are test scores
    of_all = not data.test.is_apart
    source = source_of(data) if of_all else source_of(data.test)
    held_out = scored_by(in_use, IN_USE, source, f"the test rows of {shown(run)}", row_id if of_all else None)
    if not (np.array_equal(held_out.row_id, row_id) and np.array_equal(held_out.y, y)):
        raise InputError(
            f"the test rows of {shown(run)} cannot be read again as they were: its data has changed since. Name rows by --data"
        )
    return held_out


def on_data(run: str, in_use: str, name: str, source: Source) -> Pair:
    """Return the scores of the rows of a data set that is named."""
    old = scored_by(in_use, IN_USE, source, name)
    new = scored_by(model_folder(run), shown(run), source, name)
    return Pair(name, new.y, new.scores, old.scores)


def scored_by(folder: str, who: str, source: Source, data: str, wanted: np.ndarray | None = None) -> HeldOutRows:
    """Return the scores of the rows of a source by a saved model that was not trained on them."""
    model, (profile, seen) = load_with_seen(folder)
    rows = score_labelled(model, source, seen, wanted, name=data)
    refuse_trained_on(rows, profile, who, data)
    return rows


def _data_of(run: str) -> DataConfig:
    """Return the data of a run, as its configuration says."""
    where = f"{run}/config.yaml"
    content = parse_yaml(read_bytes(where).decode(), shown(where))
    if not isinstance(content, dict) or "data" not in content:
        raise InputError(f"{shown(where)} does not say which data the run was trained on: name rows by --data")
    return DataConfig.model_validate(content["data"])
