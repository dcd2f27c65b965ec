"""Searches choose by metrics within groups, `features: auto` by the AUC within groups, or of grades by NDCG."""

import numpy as np
import pandas as pd
import pytest
from support.runs import QUIET, load_cv, load_train, write_config

from aucdist import PairwiseHingeClassifier
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.metrics.groups import group_auc, group_ndcg
from aucdist.metrics.named import find_metric
from aucdist.search.auto import LAMS, auto_search
from aucdist.search.fold_scores import measured, scored_groups
from aucdist.search.folds import masked_blocks
from flows.cv.run import cross_validate
from flows.run_folder.folder import read_metrics
from flows.train.run import train

pytestmark = pytest.mark.filterwarnings("ignore::aucdist.metrics.IntervalWarning")  # the rows are few


def rows(n=900, n_users=45):
    """Return rows whose label follows column a within users, and column c, which is the user, across them."""
    r = np.random.default_rng(0)
    user = r.integers(0, n_users, n)
    X = r.normal(size=(n, 3))
    X[:, 2] = r.normal(size=n_users)[user]
    return X, X[:, 0] + 3 * X[:, 2] + 0.5 * r.normal(size=n), user


FEW = {"n": 96, "n_users": 24}
"""Rows of which `features: auto` tries no pairs and no leaves, whose positives are too few."""


def write(folder, kind="cv", *, graded=False, grouped=True, size=None, **more):
    X, relevance, user = rows(**(size or {}))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["y"] = np.digitize(relevance, [-1, 1]) if graded else (relevance > 0).astype(int)
    source = {"label": "y"} | ({"labels": "grades"} if graded else {"positive": 1})
    if grouped:
        frame["user"], source["groups"] = user, "user"
    content = {"blocks": 2, **more}
    if kind == "cv":
        content = {"folds": {"number": 3}, "grid": {"lam": [0.1, 0.001]}, **content}
    load = load_cv if kind == "cv" else load_train
    return load(str(write_config(folder, frame, source, **content)), [], str(folder / "runs"))


def lower_grades(folder):
    frame = pd.read_csv(folder / "rows.csv")
    frame.assign(y=frame["y"] - 1).to_csv(folder / "rows.csv", index=False)


def in_blocks(X, grade, graded, **more):
    """Return three blocks of rows."""
    grades = {"grade": grade} if graded else {}
    return LocalBlocks(into_blocks(Block.of(X, np.where(grade > 0, 1, -1), **grades, **more), 3))


@pytest.mark.parametrize("graded", [False, True])
def test_the_measure_of_a_fold_is_that_of_its_rows(graded):
    X, relevance, user = rows()
    y = np.digitize(relevance, [-1, 1]) if graded else np.where(relevance > 0, 1, -1)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    model = PairwiseHingeClassifier(lam=0.01, **({"grade_weight": "one"} if graded else {})).fit(X, y, groups=user)
    scores, inside = X @ model.coef_[0], user % 3 == 0
    grade = y if graded else (y > 0).astype(int)
    area, ndcg = find_metric("group_auc"), find_metric("group_ndcg@3")
    for weights in (None, weight):
        held_out = masked_blocks(in_blocks(X, grade, graded, group=user, weight=weights), inside)
        of = {"groups": user[inside], "sample_weight": None if weights is None else weights[inside]}
        expected = group_auc(grade[inside], scores[inside], **of)
        assert measured(model, held_out, area).mean == pytest.approx(expected.mean, abs=1e-14)
        assert measured(model, held_out, area, "groups").mean == pytest.approx(expected.values.mean(), abs=1e-14)
        expected = group_ndcg(grade[inside], scores[inside], k=3, **of)
        assert measured(model, held_out, ndcg).mean == pytest.approx(expected.mean, abs=1e-14)
    assert len(scored_groups(held_out, model.coef_[0]).y) == inside.sum()
    with pytest.raises(InputError, match="the rows have no groups"):
        measured(model, in_blocks(X, grade, False), ndcg)


@pytest.mark.parametrize("graded", [False, True])
def test_a_search_with_groups_chooses_by_the_auc_within_them(tmp_path, graded):
    search = cross_validate(write(tmp_path, graded=graded), QUIET)
    assert search["metric"] == "group_auc"
    assert 0 < search["table"][0]["standard_error"] < 0.05
    assert 10 < len(search["groups"]) <= 45  # the users with pairs among the training rows
    if graded:
        return
    alike = {"lam": 0.01, "group_weight": "groups"}
    other = cross_validate(write(tmp_path, graded=graded, name="alike", model=alike), QUIET)
    assert all(a["mean"] != b["mean"] for a, b in zip(search["table"], other["table"], strict=True))
    other = cross_validate(write(tmp_path, graded=graded, name="all", metric="auc"), QUIET)
    assert other["metric"] == "auc"
    assert "groups" not in other
    assert all(a["mean"] != b["mean"] for a, b in zip(search["table"], other["table"], strict=True))


def test_a_search_by_ndcg(tmp_path):
    search = cross_validate(write(tmp_path, graded=True, metric="ndcg", k=5), QUIET)
    assert search["metric"] == "group_ndcg@5"
    assert 0.5 < search["score"] <= 1.0
    config = write(tmp_path, graded=True, metric="ndcg", k=5)
    lower_grades(tmp_path)
    with pytest.raises(InputError, match="the lowest one is -1: choose 'group_auc'"):
        cross_validate(config, QUIET)
    with pytest.raises(InputError, match="metric 'ndcg' needs k"):
        write(tmp_path, metric="ndcg")


def test_without_groups_the_metrics_that_are_possible_are_named(tmp_path):
    with pytest.raises(InputError, match=r"give it `groups`.*the metrics are auc, average_precision"):
        cross_validate(write(tmp_path, grouped=False, metric="group_auc"), QUIET)


def test_grades_without_groups_are_one_group(tmp_path):
    assert cross_validate(write(tmp_path, graded=True, grouped=False), QUIET)["metric"] == "group_auc"


def test_features_are_chosen_within_groups(tmp_path):
    size = {"n": 90, "n_users": 19}
    config = write(tmp_path, "train", size=size, model={"features": "auto", "lam": 0.01, "tol": 0.05})
    assert read_metrics(train(config, QUIET)["run"])["search"]["metric"] == "group_auc"
    pd.read_csv(tmp_path / "rows.csv").assign(user=1).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InputError, match="all rows are of one group"):  # one group cannot be on both sides of a fold
        train(config, QUIET)


@pytest.mark.parametrize(
    ("graded", "options", "metric", "size"),
    [
        (False, {}, "group_auc", {"n": 150, "n_users": 15}),  # enough for pairs and leaves
        (True, {"metric": "group_auc"}, "group_auc", FEW),
    ],
)
def test_a_search_for_features_is_within_groups(tmp_path, graded, options, metric, size):
    more = {"model": {"features": "auto", "tol": 0.05}, "grid": {"lam": [0.01]}, "folds": {"number": 2}}
    search = cross_validate(write(tmp_path, graded=graded, size=size, **more, **options), QUIET)
    assert (search["metric"], search["rule"]) == (metric, "simplest")
    assert search["table"][0]["standard_error"] > 0


def train_by(tmp_path, features, **more):
    model = {"features": features, "lam": 0.01, "tol": 0.05}
    return read_metrics(train(write(tmp_path, "train", size=FEW, model=model, **more), QUIET)["run"])["search"]


def test_features_of_grades_are_chosen_by_ndcg_or_what_is_given(tmp_path):
    search = train_by(tmp_path, "auto", graded=True)
    assert (search["metric"], search["rule"]) == ("group_ndcg@10", "simplest")
    assert search["table"][0]["standard_error"] > 0
    by_ndcg = train_by(tmp_path, {"map": "auto", "metric": "ndcg", "k": 3}, graded=True)
    assert by_ndcg["metric"] == "group_ndcg@3"
    assert [row["mean"] for row in by_ndcg["table"]] != [row["mean"] for row in search["table"]]
    assert train_by(tmp_path, {"map": "auto", "metric": "average_precision"})["metric"] == "average_precision"


def test_the_metric_of_features_is_one_of_the_rows(tmp_path):
    with pytest.raises(InputError, match="metric 'group_auc' is measured within groups, and the source has none"):
        train_by(tmp_path, {"map": "auto", "metric": "group_auc"}, grouped=False)
    config = write(tmp_path, "train", graded=True, model={"features": {"map": "auto", "metric": "ndcg", "k": 3}})
    lower_grades(tmp_path)
    with pytest.raises(InputError, match="the lowest one is -1"):
        train(config, QUIET)
    config = write(tmp_path, "train", graded=True, size=FEW, model={"features": "auto", "lam": 0.01, "tol": 0.05})
    lower_grades(tmp_path)
    assert read_metrics(train(config, QUIET)["run"])["search"]["metric"] == "group_auc"


def test_a_search_has_one_metric(tmp_path):
    with pytest.raises(InputError, match="remove `metric` from `features: auto`"):
        write(tmp_path, model={"features": {"map": "auto", "metric": "auc"}})


def test_folds_of_few_groups():
    size = {"n_pos": 50, "n_neg": 200, "n_features": 3}
    assert auto_search(PairwiseHingeClassifier(), **size, n_groups=3).n_folds == 3
    search = auto_search(PairwiseHingeClassifier(), **size, lowest_grade=0.0)
    assert search.metric.name == "group_auc"  # of one group of all rows the first ten say nothing
    search = auto_search(PairwiseHingeClassifier(), n_pos=400, n_neg=400, n_features=3, n_groups=9, grouped=True)
    tried = search.settings
    assert sum("within_groups" in (point["features"] or {}) for point in tried) == 2 * len(LAMS)
