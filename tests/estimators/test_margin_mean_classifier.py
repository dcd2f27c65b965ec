import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from imblearn.over_sampling import SMOTE
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from support.fits import fitted
from support.margin_twins import minimum, objective, offset

from aucdist import MarginMeanClassifier
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import margin_mean
from aucdist.metrics import g_mean_score
from aucdist.sampling import MWMOTE, DistanceUnderSampler
from aucdist.search.folds import masked_blocks

SOLVERS = ["zovr", "zo-sgd", "svrg"]
KERNELS = ["linear", "rbf"]


def problem(n=400, share=0.15, d=4, seed=0):
    r = np.random.default_rng(seed)
    y = np.where(np.arange(n) < share * n, 1, -1)
    order = r.permutation(n)
    X = r.normal(size=(n, d)) + 1.2 * (y[:, None] > 0)
    return (X * [1, 10, 100, 1000][:d] + 5)[order], y[order]


def fit(X, y=None, sample_weight=None, **parameters):
    model = MarginMeanClassifier().set_params(**{"random_state": 0, "solver__n_outer": 30} | parameters)
    return fitted(model, X, y, sample_weight)


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_sampling_the_objective_is_that_of_the_standardised_rows(solver):
    X, y = problem()
    model = fit(X, y, solver=solver, sampler=None, lam1=0.5, lam2=5.0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    above = offset(Z, y, 0.5)
    c = model.certificate_
    assert c.primal == pytest.approx(objective(model.coef_[0] * X.std(axis=0), Z, y, 0.5, 5.0) + above, rel=1e-9)
    assert c.dual <= (minimum(Z, y, 0.5, 5.0) + above) * (1 + 1e-9) <= c.primal * (1 + 2e-9)
    # The paper's rule: the sign of w.x of the standardised rows.
    np.testing.assert_allclose(
        model.decision_function(X) + model.margin_threshold_, Z @ (model.coef_[0] * X.std(axis=0)), atol=1e-9
    )
    assert model.sample_counts_ == (340, 60)
    assert model.history_["round"].iloc[-1] <= 31
    assert not hasattr(model, "predict_proba")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_and_kernel_learns(solver, kernel):
    X, y = problem()
    model = fit(X, y, solver=solver, kernel=kernel, lam1=1.0)
    assert g_mean_score(y, model.predict(X)) > 0.8
    assert model.sample_counts_[1] == 60
    assert 60 < model.sample_counts_[0] < 340
    again = fit(X, y, solver=solver, kernel=kernel, lam1=1.0)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert model.set_params(random_state=1, solver__n_outer=30).fit(X, y).sample_counts_ != again.sample_counts_


def test_the_gaussian_machine_is_the_sum_it_says(monkeypatch):
    X, y = problem()
    model = fit(X, y, kernel="rbf", solver="svrg", sigma=1.5)
    scaled = model.support_vectors_
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(scaled.std(axis=0), 1, atol=1e-9)
    which = DistanceUnderSampler(
        random_state=int(np.random.RandomState(0).randint(2**31, size=2)[0])
    )  # the seed that "auto" draws
    which.fit_resample((X - X.mean(axis=0)) / X.std(axis=0), y)
    rows = X[which.sample_indices_]
    Z = (X - rows.mean(axis=0)) / rows.std(axis=0)
    scores = rbf_kernel(Z, scaled, gamma=1 / 1.5**2) @ model.dual_coef_[0]
    np.testing.assert_allclose(model.decision_function(X), scores - model.raw_threshold, atol=1e-9)
    assert model.sigma_ == 1.5
    assert not hasattr(model, "coef_")
    # Some rows at a time, to the same numbers.
    before = model.decision_function(X)
    monkeypatch.setattr(margin_mean, "CHUNK_BYTES", 8 * 1000)
    np.testing.assert_allclose(model.decision_function(X), before, atol=1e-12)


@pytest.mark.parametrize(("form", "n_blocks"), [(np.asarray, 3), (sp.csr_matrix, 1)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_gram_matrix_beyond_its_bound_gives_the_same_numbers(solver, form, n_blocks):
    """17 rows at a time with one block, 5 with each of three; a row takes 3200 bytes."""
    X, y = problem()
    blocks = LocalBlocks(into_blocks(Block.of(form(X), y), n_blocks))
    parameters = {"kernel": "rbf", "solver": solver, "sampler": None, "solver__n_outer": 4}
    kept = fit(blocks, **parameters)
    in_parts = fit(blocks, **parameters, gram_bytes=17 * 3200)
    np.testing.assert_allclose(in_parts.dual_coef_, kept.dual_coef_, rtol=1e-12, atol=1e-12)
    assert (in_parts.certificate_.primal, in_parts.certificate_.dual) == pytest.approx(
        (kept.certificate_.primal, kept.certificate_.dual), rel=1e-12
    )


def test_how_many_rows_of_a_gram_matrix_are_held():
    assert margin_mean.rows_at_once(400, 1, 1_280_000) is None
    assert margin_mean.rows_at_once(400, 1, 1_279_999) == 399
    assert margin_mean.rows_at_once(400, 3, 17 * 3200) == 5
    assert margin_mean.rows_at_once(400, 3, 3 * 3200) == 1
    assert margin_mean.rows_at_once(100_000, 1, 10**9) == 20  # not more than the caches hold
    assert margin_mean.rows_at_once(3_000_000, 1, 10**9) == 1
    with pytest.raises(InputError, match=r"for each of 3\) takes 9600 bytes, and gram_bytes is 9599"):
        margin_mean.rows_at_once(400, 3, 9599)


def test_the_gaussian_objective_is_a_support_vector_machines():
    """With lam1 = 0; and its coefficients are near those of a dual point, y alpha n / lam2 from [0, 1]."""
    X, y = problem(120, 0.3)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = fit(
        X, y, kernel="rbf", solver="svrg", sampler=None, lam1=0.0, lam2=20.0, sigma=2.0, solver__n_outer=300, tol=1e-6
    )
    gram = rbf_kernel(Z, gamma=0.25)
    alpha = model.dual_coef_[0]
    primal = 0.5 * alpha @ gram @ alpha + 20.0 * np.maximum(0, 1 - y * (gram @ alpha)).mean()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)
    assert model.certificate_.relative_gap < 1e-3
    assert (np.abs(y * alpha * 120 / 20 - 0.5) <= 0.51).all()


def test_sigma_is_the_median_distance():
    X, y = problem(100)
    default, other = (fit(X, y, kernel="rbf", solver="svrg", sampler=None, sigma=s) for s in (None, "median"))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    apart = np.linalg.norm(Z[:, None] - Z, axis=2)[np.triu_indices(100, 1)]
    assert default.sigma_ == other.sigma_ == pytest.approx(np.median(apart), rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_any_sampler(kernel):
    X, y = problem()
    names = np.where(y > 0, "rare", "usual")
    for sampler in (MWMOTE(random_state=0), SMOTE(random_state=0), RandomUnderSampler(random_state=0)):
        model = fit(X, names, solver="svrg", kernel=kernel, sampler=sampler)
        assert model.sample_counts_[0] == model.sample_counts_[1]
        assert g_mean_score(names, model.predict(X)) > 0.75
        assert not hasattr(sampler, "sample_indices_")
    u2 = fit(X, y, solver="svrg", kernel=kernel, sampler=DistanceUnderSampler(method="u2", ratio=3, random_state=0))
    assert u2.sample_counts_[0] < 180
    svm = fit(X, y, solver="svrg", kernel=kernel, sampler=DistanceUnderSampler(svm=SVC(), random_state=0))
    assert svm.sample_counts_ != u2.sample_counts_


@pytest.mark.parametrize("kernel", KERNELS)
def test_blocks_and_dask_collections(kernel):
    X, y = problem()
    parameters = {"solver": "svrg", "kernel": kernel, "solver__n_outer": 100}
    plain = fit(X, y, **parameters)
    blocks = fit(LocalBlocks(into_blocks(Block.of(X, y), 3)), **parameters)
    chunks = fit(da.from_array(X, chunks=(150, 4)), da.from_array(y, chunks=150), **parameters)
    for model in (blocks, chunks):
        # The samples differ only as the hyperplanes do, which are found to 1 %.
        assert abs(model.sample_counts_[0] - plain.sample_counts_[0]) < 25
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=0.2)
    labels = chunks.predict(da.from_array(X, chunks=(150, 4))).compute()
    np.testing.assert_array_equal(labels, chunks.predict(X))


def test_weights():
    X, y = problem()
    weight = np.where(np.arange(400) % 3 == 0, 0.0, 1.0)
    for sampler in ("auto", None):
        model = fit(X, y, sample_weight=weight, solver="svrg", sampler=sampler)
        assert sum(model.sample_counts_) <= 267
        assert g_mean_score(y, model.predict(X)) > 0.75
    # Rows outside a fold weigh nothing; that is no reason to refuse a sampler that takes no weights.
    blocks = masked_blocks(LocalBlocks([Block.of(X, y)]), weight > 0)
    kept = fit(blocks, solver="svrg", sampler=MWMOTE(random_state=0)).sample_counts_
    assert kept == ((y[weight > 0] < 0).sum(),) * 2
    with pytest.raises(InputError, match="MWMOTE needs rows in one block and without weights"):
        fit(X, y, sample_weight=weight + 0.5, sampler=MWMOTE())


def test_a_refit_forgets_the_other_kernel():
    X, y = problem(100)
    model = fit(X, y, kernel="rbf", solver="svrg")
    model.set_params(kernel="linear").fit(X, y)
    assert not hasattr(model, "dual_coef_")
    assert model.decision_function(X).shape == (100,)
    assert clone(model).get_params()["sampler"] == "auto"


def test_a_fit_that_is_not_done_says_so():
    with pytest.warns(ConvergenceWarning, match="max_passes was reached"):
        MarginMeanClassifier(tol=1e-9, sampler=None, max_passes=5).fit(*problem(100))
    with pytest.warns(ConvergenceWarning, match=r"took all its steps\. Raise `tol`, give the solver more steps"):
        MarginMeanClassifier().set_params(solver="zovr", solver__n_outer=1, tol=1e-9, sampler=None).fit(*problem(100))


def test_bad_data():
    X, y = problem()
    with pytest.raises(InputError, match="one class"):
        fit(X, np.ones(400))
    with pytest.raises(InputError, match="MWMOTE needs rows in one block"):
        fit(LocalBlocks(into_blocks(Block.of(X, y), 2)), sampler=MWMOTE())
    with pytest.raises(InputError, match="all rows are equal"):
        fit(np.ones((400, 4)), y, kernel="rbf", sampler=None)
    with pytest.raises(InputError, match=r"feature 2 \(counted from 0\): its values are too large"):
        fit(X * [1, 1, 1e200, 1], y)
