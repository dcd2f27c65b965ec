"""The search of `features: auto`: its metric is what is trained for, and its settings are those of the rows."""

from dataclasses import replace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucdist import LinkClassifier, PairwiseHingeClassifier, PairwiseSquareClassifier, lam_path
from aucdist.data.block import Block, each_of, into_blocks
from aucdist.data.preprocess import fit_preprocessor
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.dask import DaskBlocks, local_client
from aucdist.errors import InputError
from aucdist.estimators import HingeClassifier
from aucdist.metrics.named import NAMED_METRICS
from aucdist.pairs.top_negatives import trained_max_fpr
from aucdist.search import auto
from aucdist.search.choice import complexity
from aucdist.search.fold_scores import score_settings
from aucdist.search.folds import masked_blocks

SIZE = {"n_pos": 500, "n_neg": 2000, "n_features": 6}


@pytest.mark.parametrize(
    ("params", "metric"),
    [
        ({}, "auc"),
        ({"max_fpr": 0.05}, "shrunk_partial_auc@0.05"),
        ({"max_false_positives": 20}, "shrunk_partial_auc@0.01"),
        ({"max_false_positives": 1999}, "shrunk_partial_auc@0.9995"),
    ],
)
def test_the_measure_is_the_one_that_is_trained_for(params, metric):
    search = auto.auto_search(PairwiseHingeClassifier(**params), **SIZE)
    assert (search.metric.name, search.rule, search.n_folds) == (metric, "best" if params else "simplest", 5)
    assert sorted({setting["lam"] for setting in search.settings}, reverse=True) == list(
        auto.LAMS if not params else auto.LAMS_OF_TOP
    )
    tried = [setting["features"] for setting in search.settings]
    forests = auto.LEAVES_OF_TOP if params else auto.FORESTS
    lams = {setting["lam"] for setting in search.settings if setting["features"] in forests}
    assert lams == ({1e-1, 1e-3} if params else {1.0, 1e-1})
    assert [features for features in tried if features in (auto.LEAVES, *auto.FORESTS, *auto.LEAVES_OF_TOP)][
        ::2
    ] == list(forests)


@pytest.mark.parametrize(
    "model", [LinkClassifier(), LinkClassifier(lam=1e-3), PairwiseHingeClassifier(monotone={0: "increasing"})]
)
def test_probability_models_and_directions_have_no_column_of_the_score(model):
    tried = [setting["features"] for setting in auto.auto_search(model, **SIZE).settings]
    assert auto.LEAVES in tried
    assert not any("forest_score" in (features or {}) for features in tried)


@pytest.mark.parametrize(("name", "value"), [("max_fpr", 0.05), ("max_false_positives", 20)])
def test_the_top_is_fitted_over_all_pairs_as_well(name, value):
    settings = auto.auto_search(PairwiseHingeClassifier(**{name: value}), **SIZE).settings
    over_all = [setting for setting in settings if setting[name] is None]
    assert [setting["features"] for setting in over_all[::2]] == list(auto.ALL_PAIRS)
    assert {setting[name] for setting in settings} == {value, None}
    assert {tuple(sorted(setting)) for setting in settings} == {("features", "lam", name, "monotone")}


def test_the_top_of_few_rows_has_forests_and_that_of_directions_those_without_a_score():
    few = auto.auto_search(PairwiseHingeClassifier(max_fpr=0.05), **SIZE | {"n_pos": 100}).settings
    assert auto.LEAVES_OF_TOP[0] in [setting["features"] for setting in few]
    directed = auto.auto_search(PairwiseHingeClassifier(max_fpr=0.05, monotone={0: "increasing"}), **SIZE).settings
    tried = [setting["features"] for setting in directed]
    assert auto.LEAVES in tried
    assert not any(forest in tried for forest in auto.LEAVES_OF_TOP)


def test_sizes_and_given_values_are_kept():
    search = auto.auto_search(PairwiseHingeClassifier(max_fpr=0.1, tol=0.05), **SIZE | {"n_pos": 3}, lam=0.3)
    assert {setting["lam"] for setting in search.settings} == {0.3}
    assert (search.n_folds, search.tol) == (3, 0.05)
    assert auto.auto_search(PairwiseHingeClassifier(max_fpr=0.1), **SIZE).tol == 3e-2
    assert auto.auto_search(LinkClassifier(tol=1e-6), **SIZE).tol == 3e-2
    assert trained_max_fpr(LinkClassifier(), 10) is None
    assert trained_max_fpr(PairwiseHingeClassifier(max_false_positives=20), 10) == 1.0


def test_probability_models_try_smaller_lam_where_positives_are_rare():
    rare = auto.auto_search(LinkClassifier(), n_pos=84, n_neg=99_916, n_features=6)
    assert sorted({setting["lam"] for setting in rare.settings}) == [3.4e-8, 3.4e-7, 3.4e-6, 3.4e-5]
    balanced = auto.auto_search(LinkClassifier(), n_pos=500, n_neg=500, n_features=6)
    assert sorted({setting["lam"] for setting in balanced.settings}) == [1e-5, 1e-4, 1e-3, 1e-2]
    assert {setting["lam"] for setting in auto.auto_search(LinkClassifier(lam=0.3), lam=0.3, **SIZE).settings} == {0.3}


def test_of_two_forests_the_smaller_one_is_the_simpler():
    order = [
        complexity(form) for form in ({"map": "bins", "interactions": 40}, "leaves", {"map": "leaves"}, auto.LEAVES)
    ]
    assert order == sorted(order)
    assert order[1] == order[2] < order[3]


def test_python_chooses_features_by_the_same_search():
    r = np.random.default_rng(0)
    X = r.standard_normal((160, 2))
    y = (X[:, 0] ** 2 + 0.3 * r.standard_normal(160) > 1.5).astype(int)  # no line ranks these
    model = PairwiseHingeClassifier(features="auto", tol=1e-2).fit(X, y)
    assert model.chosen_["features"] is not None
    assert (model.features, model.lam) == ("auto", 1e-3)
    assert PairwiseHingeClassifier(features="auto", lam=0.02, tol=1e-2).fit(X, y).chosen_["lam"] == 0.02  # as given
    alone = PairwiseHingeClassifier(tol=1e-2).set_params(**model.chosen_).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    assert roc_auc_score(y, model.decision_function(X)) > 0.9
    with pytest.raises(InputError, match="works in `fit` only"):
        lam_path(model, X, y, lams=[1e-2])
    model.set_params(features=None).fit(X, y)
    assert not hasattr(model, "chosen_")
    assert not hasattr(model, "feature_map_")


def test_python_chooses_features_by_another_metric(monkeypatch):
    r = np.random.default_rng(0)
    X = r.standard_normal((160, 2))
    y = X[:, 0] + r.standard_normal(160) > 1.5
    metrics, choose = [], auto.choose_features
    monkeypatch.setattr(
        auto,
        "choose_features",
        lambda *args, metric, **rest: metrics.append(metric) or choose(*args, metric=metric, **rest),
    )
    features = {"map": "auto", "metric": "recall_at_fpr", "max_fpr": 0.1}
    model = PairwiseHingeClassifier(features=features, tol=1e-2).fit(X, y)
    assert metrics == ["recall_at_fpr@0.1"]
    assert model.features == features
    assert "features" in model.chosen_
    with pytest.raises(InputError, match=r"'average_precison'\. Did you mean"):
        PairwiseHingeClassifier(features={"map": "auto", "metric": "average_precison"}).fit(X, y)
    with pytest.raises(InputError, match="`readable` of `features: auto` must be True or False; got 'yes'"):
        PairwiseHingeClassifier(features={"map": "auto", "readable": "yes"}).fit(X, y)
    with pytest.raises(InputError, match=r"unknown option of `features: auto`: 'readible'\. Did you mean 'readable'"):
        PairwiseHingeClassifier(features={"map": "auto", "readible": True}).fit(X, y)
    with pytest.raises(InputError, match=r"'autos'\. Did you mean 'auto'"):
        PairwiseHingeClassifier(features="autos").fit(X, y)


def test_python_chooses_a_readable_map():
    r = np.random.default_rng(0)
    X = r.standard_normal((160, 3))
    y = X[:, 0] ** 2 + X[:, 1] ** 2 + X[:, 2] ** 2 + 0.3 * r.standard_normal(160) > 4
    model = PairwiseHingeClassifier(features={"map": "auto", "readable": True}, tol=1e-2).fit(X, y)
    assert model.chosen_["features"]["map"] == "bins"
    assert model.shapes()
    one = np.arange(160) == 7  # no folds can be made
    model.fit(X, one)
    assert model.chosen_ == {"features": {"map": "bins", "interactions": 3}}
    with pytest.raises(InputError, match="1 positive row cannot be divided"):
        model.set_params(features="auto").fit(X, one)


@pytest.mark.parametrize(
    ("options", "are_drawn"), [({}, True), ({"max_false_positives": 5}, False), ({"max_fpr": 0.1}, False)]
)
def test_a_sample_chooses_a_readable_map_for_many_rows_unless_the_top_decides(monkeypatch, options, are_drawn):
    monkeypatch.setattr(auto, "DRAWN_ROWS", 40)
    blocks, notes = LocalBlocks([rows(400)]), []
    estimator = PairwiseHingeClassifier(tol=1e-2, **options)
    auto.choose_features(estimator, blocks, missing=False, readable=True, lam=0.1, note=notes.append)
    assert any("of the 400 rows" in note for note in notes) == are_drawn


# ---- rows behind a mask give the same bits as rows of their own -------------------------------


POINTS = [{"lam": 1.0}, {"lam": 1e-2}, {"lam": 1e-3}]


def rows(n=400, weighted=False, sparse=False):
    r = np.random.default_rng(0)
    y = np.where(r.random(n) < 0.2, 1, -1)
    X = np.round(r.normal(size=(n, 6)) + 0.5 * (y == 1)[:, None], 1)
    weight = r.integers(1, 4, n).astype(float) if weighted else None
    return Block.of(sp.csr_matrix(X) if sparse else X, y, weight=weight, row_id=r.permutation(2 * n)[:n])


def sides(block, seed=1):
    train = np.zeros(block.row_id.max() + 1, dtype=bool)
    train[block.row_id] = np.random.default_rng(seed).random(block.n_samples) < 0.7
    held_out = np.zeros_like(train)
    held_out[block.row_id] = ~train[block.row_id]
    return train, held_out


def load(index):
    return into_blocks(rows(), 3)[index]


def own_rows(blocks, side):
    return [b.take(side[b.row_id], index=b.index) for b in blocks]


def figures(results):
    return [{k: v for k, v in result.items() if k != "seconds"} for result in results]


def scored(train, held_out, tol=1e-3):
    return figures(score_settings(PairwiseHingeClassifier(tol=tol), POINTS, train, held_out, NAMED_METRICS["auc"]))


@pytest.mark.parametrize("n_blocks", [1, 3])
@pytest.mark.parametrize(("weighted", "sparse"), [(False, False), (True, True)])
def test_same_bits_as_rows_of_their_own(n_blocks, weighted, sparse):
    whole = rows(weighted=weighted, sparse=sparse)
    blocks = into_blocks(whole, n_blocks)
    train, held_out = sides(whole)
    masked = scored(*(masked_blocks(LocalBlocks(blocks), side) for side in (train, held_out)))
    assert masked == scored(*(LocalBlocks(own_rows(blocks, side)) for side in (train, held_out)))
    assert len({result["value"] for result in masked}) > 1


def test_same_bits_with_a_scaling_of_the_folds_own():
    blocks = into_blocks(rows(), 2)
    train, held_out = sides(rows())
    names = [str(j) for j in range(6)]
    own = own_rows(blocks, train)
    scaling = fit_preprocessor(each_of(own), names, log1p=None, scale="standard", categories={})
    masked = scored(*(masked_blocks(LocalBlocks(blocks), side, scaling) for side in (train, held_out)))
    parts = [[scaling.transform(b) for b in own_rows(blocks, side)] for side in (train, held_out)]
    assert masked == scored(*map(LocalBlocks, parts))


def test_what_the_client_knows_is_of_the_kept_rows():
    blocks, (train, _) = into_blocks(rows(weighted=True), 3), sides(rows())
    masked, own = masked_blocks(LocalBlocks(blocks), train), LocalBlocks(own_rows(blocks, train))
    known = [replace(info, lasting=True) for info in masked.infos]  # masks read their rows through the unmasked blocks
    assert known == own.infos
    assert masked.without_memory().infos == masked.infos
    assert not masked_blocks(LocalBlocks(into_blocks(rows(), 3)), train).has_weights


def test_same_bits_on_workers(client):
    train, held_out = sides(rows())
    there = DaskBlocks.load(client, load, 3)
    here = LocalBlocks([load(i) for i in range(3)])
    bits = [scored(masked_blocks(blocks, train), masked_blocks(blocks, held_out), tol=0.2) for blocks in (here, there)]
    assert bits[0] == bits[1]


# ---- scikit-learn's own search and joblib over Dask work with our estimators ------------------


FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def data():
    r = np.random.default_rng(0)
    y = r.random(240) < 0.25
    return r.normal(size=(240, 5)) + 0.7 * y[:, None], np.where(y, "rare", "usual")


@pytest.mark.parametrize(
    "model",
    [PairwiseHingeClassifier(), PairwiseSquareClassifier(), HingeClassifier(random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_grid_search_over_a_pipeline(model, data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), model)
    name = type(model).__name__.lower()
    grid = {f"{name}__lam": [1.0, 1e-2]}
    search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=FOLDS, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_.predict(X).dtype == y.dtype
    scores = cross_val_score(search.best_estimator_, X, y, cv=FOLDS, scoring="roc_auc", error_score="raise")
    assert scores.mean() == pytest.approx(search.best_score_)


def test_our_folds_score_as_scikit_learns_do(data):
    X, y = data
    lams = [1.0, 0.1, 1e-2]
    search = GridSearchCV(PairwiseHingeClassifier(tol=1e-6), {"lam": lams}, scoring="roc_auc", cv=FOLDS).fit(X, y)
    labels = np.where(y == search.classes_[1], 1, -1)
    for k, (train, test) in enumerate(FOLDS.split(X, y)):
        sides = [LocalBlocks([Block.of(X[rows], labels[rows])]) for rows in (train, test)]
        ours = score_settings(
            PairwiseHingeClassifier(tol=1e-6), [{"lam": lam} for lam in lams], *sides, NAMED_METRICS["auc"]
        )
        theirs = search.cv_results_[f"split{k}_test_score"]
        assert [result["value"] for result in ours] == pytest.approx(theirs, abs=2e-3)


@pytest.mark.slow
def test_joblib_over_dask(data):
    X, y = data
    search = GridSearchCV(PairwiseHingeClassifier(), {"lam": [1.0]}, scoring="roc_auc", cv=2, n_jobs=2)
    here = search.fit(X, y).cv_results_["mean_test_score"]
    with local_client(2, memory_limit="1GiB"), joblib.parallel_backend("dask"):
        there = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(here, there)
