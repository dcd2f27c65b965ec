"""Whether a model of several classes is better than the one in use: a paired test of the mean AUC over the classes."""

from dataclasses import asdict
from typing import Any

import numpy as np

from aucdist.data.sources import Source
from aucdist.data.storage.files import exists, shown
from aucdist.errors import InputError
from aucdist.held_out import same_classes
from aucdist.linear_model import ClassModels
from aucdist.metrics.compare import delong_test, holm, macro_auc_test, measured_classes
from aucdist.model import load_model
from flows.compare.run import read_run
from flows.json_values import jsonable
from flows.promote.decision import (
    IN_USE,
    LEVEL,
    Pair,
    brier_difference,
    on_data,
    read_test_rows,
    refuse_other_split,
)
from flows.run_folder.folder import model_folder
from flows.run_folder.scores import SCORES, members_of


def decide_classes(
    run: str, in_use: str, condition: str, margin: float, data: tuple[str, Source] | None = None
) -> dict[str, Any]:
    """Test the model of a run against the version in use, both of several classes; as `flows.promote.decision.decide`.

    Under ``classes`` are the classes that have two rows and two others, which the mean is over: for each its difference, with the
    p-value corrected by Holm's method.
    """
    new, old = load_model(model_folder(run)), load_model(in_use)
    if not (isinstance(new, ClassModels) and isinstance(old, ClassModels) and same_classes([new, old])):
        raise InputError(
            f"{shown(run)} and {IN_USE} have other classes, so that their scores say different things: give --if always"
        )
    pair = _on_test_rows(run, in_use, new, old) if data is None else on_data(run, in_use, *data)
    which = measured_classes(pair.y)
    if not len(which):
        raise InputError(f"{pair.rows}: no class has two rows and two others, so that nothing can be measured")
    found = macro_auc_test(pair.y[:, which], pair.new[:, which], pair.old[:, which], LEVEL)
    bound = margin if condition == "better" else -margin
    calibration = _calibration(pair, new, old)
    worse = calibration is not None and calibration["high"] < -margin
    decision: dict[str, Any] = jsonable(
        asdict(found)
        | {"measure": "macro_auc", "condition": condition, "margin": margin, "rows": len(pair.y), "of": pair.rows}
        | {"classes": _of_each(pair, new.classes, which)}
        | {"calibration": calibration, "holds": found.low > bound and not worse}
    )
    return decision


def _of_each(pair: Pair, names: tuple[str, ...], which: np.ndarray) -> list[dict[str, Any]]:
    """Return the paired test of each class."""
    found = []
    for k in which.tolist():
        test = delong_test(np.where(pair.y[:, k], 1, -1), pair.new[:, k], pair.old[:, k], LEVEL)
        found.append({"name": names[k], "n_pos": int(pair.y[:, k].sum()), **asdict(test)})
    corrected = holm([one["p_value"] for one in found])
    return [{**one, "p_holm": p} for one, p in zip(found, corrected, strict=True)]


def _calibration(pair: Pair, new: ClassModels, old: ClassModels) -> dict[str, Any] | None:
    """Return the difference of the Brier losses, the mean over the classes; None without probabilities."""
    losses = []
    for model, scores in ((new, pair.new), (old, pair.old)):
        if (found := model.probabilities(scores)) is None:
            return None
        losses.append(((found - pair.y) ** 2).mean(axis=1))
    return brier_difference(*losses)


def _on_test_rows(run: str, in_use: str, new: ClassModels, old: ClassModels) -> Pair:
    """Return the scores of the run's test rows."""
    of_new = read_run(run)
    members = members_of(of_new.table["label"].to_numpy(), new.classes, topics=new.topics)
    scores, row_id = of_new.scores_of(new.classes), of_new.table["row_id"].to_numpy()
    if exists(f"{in_use}/{SCORES}"):
        of_old = read_run(in_use)
        same_data = of_new.about["data"]["fingerprint"] == of_old.about["data"]["fingerprint"]
        if same_data and of_new.table[["row_id", "label"]].equals(of_old.table[["row_id", "label"]]):
            return Pair("the test rows of both runs", members, scores, of_old.scores_of(old.classes))
        if same_data:
            refuse_other_split(run, row_id, of_old.table["row_id"].to_numpy())
    held_out = read_test_rows(run, in_use, row_id, members)
    return Pair("the test rows of the run", members, scores, held_out.scores)
