"""The suite `trees`: its rows, means and summaries, with systems that need no fit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.forked_workers import forked_processes

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.estimators import PairwiseHingeClassifier
from benchmarks import suites, trees
from benchmarks.output import write_table
from benchmarks.tree_systems import Contestant, chosen_by_folds


def sets(name, seed):
    r = np.random.default_rng(seed)
    train, test = (r.normal(size=(n, 2)) for n in (80, 60))
    return tuple(Block.of(X, np.where(np.abs(X[:, 0]) > 1.5, 1, -1)) for X in (train, test))


def by(column, bend):
    return lambda train: (lambda X: bend(X[:, column]), "")


def broken(train):
    raise ZeroDivisionError("oops")


SYSTEMS = [
    Contestant("linear", by(0, np.array), ours=True),
    Contestant("perfect", by(0, np.abs), ours=True),
    Contestant("peer", by(0, lambda x: np.minimum(np.abs(x), 1.6))),
    Contestant("other peer", by(1, np.array)),
    Contestant("broken", broken),
    Contestant("too many rows", by(0, np.abs), most_rows=10),
    Contestant("not installed", by(0, np.abs), package="no_such_package"),
]


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(trees, "split_and_scale", sets)
    return pd.DataFrame(trees.trees(False, only="glass2,glass4", splits=3, contestants=SYSTEMS))


def test_a_row_for_each_set_split_and_system(rows):
    each = rows[rows["split"].isin(trees.SEEDS)]
    assert len(each) == 2 * 3 * 5
    assert set(each["system"]) == {"linear", "perfect", "peer", "other peer", "broken"}
    assert each.loc[each["system"] == "perfect", "AUC"].eq(1.0).all()
    assert each.loc[each["system"] == "broken", "chosen"].eq("failed: ZeroDivisionError: oops").all()
    assert each.loc[each["system"] == "broken", "AUC"].isna().all()
    # The peer ties rows beyond 1.6 with each other only where both are positive.
    assert each.loc[each["system"] == "peer", "AUC"].eq(1.0).all()


def test_means_stand_beside_the_best_peer(rows):
    means = rows[rows["split"] == "mean"].set_index(["set", "system"])
    assert ("glass2", "broken") not in means.index
    linear = means.loc[("glass2", "linear")]
    assert linear["best peer"] == "peer"
    own = rows[(rows["set"] == "glass2") & (rows["system"] == "linear") & rows["split"].isin(trees.SEEDS)]["AUC"]
    assert linear["AUC"] == pytest.approx(own.mean())
    assert linear["AUC - best peer"] == pytest.approx(own.mean() - 1.0)
    assert linear["low"] < linear["AUC - best peer"] < linear["high"]
    assert pd.isna(means.loc[("glass2", "peer"), "best peer"])


def test_goals_count_sets_near_the_best_peer_and_losses_to_linear(rows):
    goals = rows[rows["split"] == "all"].set_index("system")
    assert goals.loc["perfect", "within 0.005 of the best peer"] == "2 of 2"
    assert goals.loc["linear", "within 0.005 of the best peer"] == "0 of 2"
    assert goals.loc["other peer", "within 0.005 of the best peer"] == "0 of 2"
    assert goals.loc["linear", "most below linear"] == 0.0
    assert goals.loc["perfect", "most below linear"] < 0.0
    assert goals.loc["linear", "set"] == "2 sets"


def first(X):
    return X[:, 0]


def fit_first(train):
    return first, "the first feature"


def fit_negative_mean(train):
    return (lambda X: -X.mean(axis=1)), ""


@pytest.mark.slow
def test_processes_side_by_side_find_what_one_finds(data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    systems = [Contestant("linear", fit_first, ours=True), Contestant("peer", fit_negative_mean)]
    with forked_processes(trees):
        alone, two = (
            pd.DataFrame(trees.trees(False, "glass2", 2, processes, systems)).drop(columns="seconds")
            for processes in (1, 2)
        )
    pd.testing.assert_frame_equal(alone, two)
    assert two["AUC"].notna().all()


def test_our_models_choose_map_and_lam_by_folds():
    train, test = sets("", 0)
    fit = chosen_by_folds(PairwiseHingeClassifier(tol=0.1), [None, {"map": "bins"}, {"map": "nystroem"}], 2)
    score, chosen = fit(train)
    assert "'map': 'bins'" in chosen or "'map': 'nystroem'" in chosen
    far = np.abs(np.abs(test.X[:, 0]) - 1.5) > 0.4
    assert ((score(test.X) > np.median(score(test.X)))[far & (test.y > 0)]).all()


def test_a_split_is_dense_scaled_and_stratified(data_dir, monkeypatch):
    monkeypatch.setenv("AUCDIST_DATA", str(data_dir))
    train, test = trees.split_and_scale("glass2", 9001)
    assert train.X.dtype == np.float64
    np.testing.assert_allclose(train.X.mean(axis=0), 0.0, atol=1e-12)
    assert (train.y > 0).mean() == pytest.approx((test.y > 0).mean(), abs=0.03)
    other, _ = trees.split_and_scale("glass2", 9002)
    assert not np.array_equal(train.X, other.X)


def test_unknown_data_sets_and_options_are_refused(monkeypatch):
    with pytest.raises(InputError, match=r"unknown data set 'glas2'. Did you mean 'glass2'"):
        next(trees.trees(False, only="glas2"))
    with pytest.raises(InputError, match="--splits is 6; 1 to 5"):
        next(trees.trees(False, splits=6))
    with pytest.raises(InputError, match="--processes must be at least 1; got 0"):
        next(trees.trees(False, processes=0))


def test_a_run_that_is_cut_off_keeps_its_rows(monkeypatch, tmp_path: Path):
    def some(slow_peers):
        yield {"a": 1}
        yield {"a": 2, "b": 3.0}
        raise KeyboardInterrupt

    monkeypatch.setattr(trees, "trees", some)
    with pytest.raises(KeyboardInterrupt):
        suites.bench(suites.load_suite("trees"), slow_peers=False, log=lambda text: None,
            keep=lambda table: write_table(str(tmp_path / "found.csv"), table),
        )  # fmt: skip
    assert pd.read_csv(tmp_path / "found.csv")["a"].tolist() == [1, 2]
