"""Wherever the rows lie, on threads, read anew for each pass, or on workers, a fit has the same bits."""

import functools
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from support.small_sets import small
from threadpoolctl import threadpool_limits

from aucdist import estimators
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import Blocks, LocalBlocks
from aucdist.engine.dask import DaskBlocks
from aucdist.errors import InputError
from aucdist.sampling import DistanceUnderSampler

N_BLOCKS = 3
X, Y = small(n_pos=40, n_neg=200, d=5)
ROWS = {
    "dense": Block.of(X, Y),
    "turned": Block.of(X, -Y),
    "sparse": Block.of(sp.csr_matrix(X * (np.abs(X) > 0.5)), Y),
    "weighted": Block.of(X, Y, weight=np.random.default_rng(1).uniform(0.2, 3.0, len(Y))),
    "in groups": Block.of(X, Y, group=np.random.default_rng(2).integers(0, 20, len(Y))),
}
HINGE, LINK = "PairwiseHingeClassifier", "LinkClassifier"
RAMP, SQUARE = "PairwiseRampClassifier", "PairwiseSquareClassifier"
MARGIN, SIGNS = "MarginMeanClassifier", {0: "increasing", 2: "decreasing"}
PLANE = DistanceUnderSampler(method="u2", ratio=3, svm=LogisticRegression().fit(X, Y), random_state=0)
SOLVERS = [
    (name, "weighted" if solver.accepts_weights else "dense", {"solver": solver.name})
    for name, kind in estimators.ESTIMATORS.items()
    for solver in kind.solvers.values()
]
MORE = [
    *((HINGE, rows, {"solver": "sdcd", "solver__average": True}) for rows in ("sparse", "in groups")),
    (HINGE, "sparse", {"solver": "sdcd-perm", "solver__combine": "average"}),
    (HINGE, "in groups", {}), (RAMP, "in groups", {}), (SQUARE, "in groups", {}), (HINGE, "sparse", {}),
    (HINGE, "dense", {"max_fpr": 0.05}), (HINGE, "dense", {"max_fpr": 0.01, "tol": 1e-12, "max_passes": 50}),  # interior points
    (HINGE, "dense", {"max_fpr": 0.2, "penalty": "l1"}),
    (HINGE, "turned", {"max_fpr": 0.3}), (HINGE, "dense", {"max_false_positives": 1}), (RAMP, "dense", {"max_fpr": 0.05}),
    *((HINGE, "dense", {"monotone": SIGNS, "features": features}) for features in (None, "bins")),
    *((HINGE, "dense", {"monotone": SIGNS, "features": "bins", **more}) for more in ({"penalty": "l1"}, {"max_fpr": 0.3})),
    (LINK, "dense", {"monotone": SIGNS}), (SQUARE, "dense", {"monotone": SIGNS, "features": "bins"}),
    (HINGE, "dense", {"features": {"map": "nystroem", "landmarks": 20}}),
    *((SQUARE, "dense", {"calibration": kind}) for kind in ("gev", "isotonic")),
    (SQUARE, "dense", {"solver": "opauc", "solver__rank": 3}),
    (LINK, "dense", {"solver": "lipschitz", "xi": "bayes", "shape_samples": 100, "shape_rounds": 2}),
    (LINK, "dense", {"link": "cloglog", "solver": "newton", "loss": "likelihood"}),
    (LINK, "dense", {"link": "probit", "solver": "gradient"}),
    (MARGIN, "dense", {"sampler": PLANE, "kernel": "rbf", "gram_bytes": 20_000}),
    (MARGIN, "dense", {"sampler": PLANE}), (MARGIN, "dense", {"kernel": "rbf", "solver": "zovr"}),
]  # fmt: skip


def part(rows: str, index: int) -> Block:
    return into_blocks(ROWS[rows], N_BLOCKS)[index]


def bits(name: str, blocks: Blocks, parameters: dict[str, Any]) -> list[object]:
    kind = estimators.ESTIMATORS[name]
    own = {LINK: {"lam": 1e-2}, MARGIN: {"solver__n_outer": 2}}.get(name, {"lam": 1e-2})
    own |= {"psa": {"penalty": "l1", "solver__radius": 2.0}}.get(parameters.get("solver", ""), {})
    model = kind().set_params(**{"tol": 1e-3, "max_passes": 6, "random_state": 0} | own | parameters)
    with (
        warnings.catch_warnings(),
        threadpool_limits(1),
    ):  # as on the workers: BLAS on more threads adds up in another order
        warnings.simplefilter("ignore")
        model.fit(blocks)
    arrays = [getattr(model, name).tobytes() for name in ("coef_", "dual_coef_") if hasattr(model, name)]
    others = [getattr(model, name, None) for name in ("certificate_", "raw_threshold", "xi_", "sample_counts_")]
    history = model.history_.drop(columns="seconds").to_json(double_precision=15)
    return [arrays, others, history, getattr(model, "probability_", None) and model.probability_.to_json()]


@pytest.mark.parametrize(("name", "rows", "parameters"), SOLVERS + MORE)
def test_a_fit_has_the_same_bits_wherever_the_rows_lie(name, rows, parameters, client):
    load, streamed = functools.partial(part, rows), (name, rows, parameters) in SOLVERS
    expected = bits(name, LocalBlocks.load(load, N_BLOCKS), parameters)
    for how in ({"n_jobs": 2}, {"stream": True}) if streamed else ({"n_jobs": 2, "stream": True},):
        assert bits(name, LocalBlocks.load(load, N_BLOCKS, **how), parameters) == expected
    assert bits(name, DaskBlocks.load(client, load, N_BLOCKS, stream=streamed), parameters) == expected


# ---- `n_jobs` of estimators: no bit depends on it, and the number of blocks depends on the number of rows alone


BY_SUMS = [
    estimators.PairwiseHingeClassifier(lam=1e-2),
    estimators.PairwiseHingeClassifier(lam=1e-2, penalty="l1"),
    estimators.PairwiseHingeClassifier(lam=1e-2, monotone="auto"),
    estimators.PairwiseRampClassifier(lam=1e-2),
    estimators.PairwiseSquareClassifier(lam=1e-2),
    estimators.LinkClassifier(lam=1e-2),
    estimators.UnivariateRankingClassifier(lam=1e-2, solver="lbfgs"),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    return X, X[:, 0] + rng.normal(size=400) > 1.0


@pytest.fixture
def cut_at_50(monkeypatch):
    monkeypatch.setattr(estimators.validation, "MIN_ROWS", 50)


@pytest.mark.parametrize("model", BY_SUMS, ids=repr)
def test_threads_change_no_bit_and_blocks_not_the_optimum(model, rows, monkeypatch):
    whole = clone(model).fit(*rows)
    monkeypatch.setattr(estimators.validation, "MIN_ROWS", 50)
    cut = [clone(model).set_params(n_jobs=n_jobs).fit(*rows) for n_jobs in (None, 2, -1)]
    assert all(np.array_equal(cut[0].coef_, other.coef_) for other in cut[1:])
    assert all(cut[0].certificate_ == other.certificate_ for other in cut[1:])
    assert cut[0].certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-3)
    of_blocks = clone(model).fit(LocalBlocks.of(rows[0], np.where(rows[1], 1, -1), n_blocks=8))
    assert np.array_equal(of_blocks.coef_, cut[0].coef_)


@pytest.mark.parametrize(
    ("model", "n_rows", "n_blocks"),
    [
        (estimators.PairwiseHingeClassifier(), 99, 1),
        (estimators.PairwiseHingeClassifier(), 100, 2),
        (estimators.PairwiseHingeClassifier(), 400, 8),
        (estimators.PairwiseHingeClassifier(solver="sdcd"), 400, 1),
        (estimators.PairwiseHingeClassifier(solver="oam-gra"), 400, 1),
    ],
)
def test_number_of_blocks(model, n_rows, n_blocks, rows, cut_at_50):
    X, y = (part[:n_rows] for part in rows)
    assert estimators.validation.training_blocks(model, X, y, None).n_blocks == n_blocks
    assert estimators.validation.training_blocks(clone(model).set_params(n_jobs=2), X, y, None).n_blocks == n_blocks


def test_blocks_bring_their_own(rows):
    blocks = LocalBlocks.of(rows[0], np.where(rows[1], 1, -1), n_blocks=2)
    with pytest.raises(InputError, match=r"n_jobs applies to arrays only; got 2\. For blocks, give LocalBlocks\.of"):
        estimators.PairwiseHingeClassifier(n_jobs=2).fit(blocks)


@pytest.mark.parametrize(
    "model",
    [
        estimators.PairwiseHingeClassifier(lam=1e-2, calibration="logit"),
        estimators.PairwiseHingeClassifier(lam=1e-2, features="bins", calibration="isotonic"),
        estimators.PairwiseSquareClassifier(lam=1e-2, features={"map": "nystroem", "landmarks": 20}, calibration="gev"),
        estimators.LinkClassifier(lam=1e-2),
    ],
)
def test_a_fit_has_the_same_bits_with_any_number_of_blas_threads(model):
    """BLAS divides sums of more than 10,000 products among its threads, and adds up the parts in another order."""
    X, y = small(n_pos=2_000, n_neg=12_000, d=3)
    fitted = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            ours = clone(model).fit(X, y)
            fitted.append((ours.coef_.tobytes(), ours.decision_function(X).tobytes(), ours.probability_.to_json()))
    assert fitted[0] == fitted[1]
