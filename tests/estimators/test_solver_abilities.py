"""What a row of a table of solvers declares is what the solver does."""

import warnings

import numpy as np
import pytest
from support.small_sets import blocks_of, small

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS, lam_path
from aucdist.search.folds import masked_blocks
from aucdist.search.schedule import paths_of

CASES = [(name, solver) for name, kind in ESTIMATORS.items() for solver in kind.solvers]
X, Y = small(n_pos=22, n_neg=26)  # fewer positives, and a few passes of Pegasos find nothing better than zero


def model(name, solver, **parameters):
    kind = ESTIMATORS[name]
    own = {"LinkClassifier": {"xi": -0.2}, "MarginMeanClassifier": {"sampler": None, "solver__n_outer": 3}}.get(
        name, {}
    )
    own |= {"psa": {"penalty": "l1", "solver__radius": 2.0}, "pegasos": {"lam": 0.1}}.get(solver, {})
    return kind().set_params(**{"solver": solver, "tol": 1e-4, "max_passes": 6, "random_state": 0} | own | parameters)


def weights_of(estimator, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*data, **options).coef_


@pytest.mark.parametrize(("name", "solver"), CASES)
def test_sample_weights_count_or_are_refused(name, solver):
    able = ESTIMATORS[name].solvers[solver].sample_weight
    weight = np.where(np.arange(len(Y)) % 3 == 0, 5.0, 0.5)
    if able:
        plain, weighted = (weights_of(model(name, solver), X, Y, w) for w in (None, weight))
        assert not np.allclose(plain, weighted)
    else:
        with pytest.raises(InputError, match=f"solver '{solver}' takes no sample weights; those that do: .*all-pairs"):
            model(name, solver).fit(X, Y, weight)


@pytest.mark.parametrize(("name", "solver"), [c for c in CASES if ESTIMATORS[c[0]].solvers[c[1]].ignores_zero_weight])
def test_rows_of_weight_zero_leave_no_trace(name, solver):
    inside = np.arange(len(Y)) % 4 != 1
    weight = np.random.default_rng(0).random(len(Y))
    parameters = [{}, {"penalty": "l1"}] if "l1" in ESTIMATORS[name].solvers[solver].penalties else [{}]
    if "max_fpr" in ESTIMATORS[name].solvers[solver].takes:
        parameters += [more | {"max_fpr": 0.3} for more in parameters]
    for more in parameters:
        masked, copied = (
            weights_of(model(name, solver, **more), blocks)
            for blocks in (
                masked_blocks(blocks_of(X, Y, weight=weight), inside),
                LocalBlocks([Block.of(X, Y, weight=weight).take(np.flatnonzero(inside))]),
            )
        )
        assert masked.tobytes() == copied.tobytes()


def test_some_solvers_mask_folds_and_calibration_does_not():
    assert model("PairwiseHingeClassifier", "all-pairs").ignores_zero_weight
    assert not model("PairwiseHingeClassifier", "all-pairs", calibration="logit").ignores_zero_weight
    assert not model("PairwiseHingeClassifier", "sdcd").ignores_zero_weight


@pytest.mark.parametrize(("name", "solver"), CASES)
def test_random_solvers_alone_depend_on_the_seed(name, solver):
    one, other = (weights_of(model(name, solver, random_state=seed), X, Y) for seed in (0, 1))
    # Buffers that hold all rows, and covariances that need no sketch, leave nothing to draw.
    draws_nothing = name == "PairwiseHingeClassifier" and solver in ("oam-seq", "oam-gra")
    if not draws_nothing:
        assert (one.tobytes() != other.tobytes()) == ESTIMATORS[name].solvers[solver].random


@pytest.mark.parametrize(("name", "solver"), CASES)
def test_a_path_is_one_task_and_others_are_one_each(name, solver):
    estimator = model(name, solver)
    if "lam" not in estimator.get_params():
        pytest.skip("there is no lam to go along")
    points = [{"lam": 1e-1}, {"lam": 1e-2}]
    if not ESTIMATORS[name].solvers[solver].has_path:
        assert paths_of(estimator, points) == [[0], [1]]
        with pytest.raises(InputError, match=r"lam_path (needs solver 'all-pairs'|does not apply)"):
            lam_path(estimator, X, Y, lams=[1e-1])
    else:
        assert paths_of(estimator, points) == [[0, 1]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert [m.lam for m in lam_path(estimator, X, Y, lams=[1e-2, 1e-1])] == [1e-2, 1e-1]


@pytest.mark.parametrize(("name", "solver"), CASES)
def test_a_resuming_solver_goes_on_where_the_last_fit_ended(name, solver):
    resumes = ESTIMATORS[name].solvers[solver].resumes
    if "warm_start" not in ESTIMATORS[name]().get_params():
        assert not resumes
        return
    estimator = model(name, solver, warm_start=True)
    weights_of(estimator, X, Y)
    if resumes:
        weights_of(estimator, X, Y)
        del estimator.resume_
        with pytest.raises(InputError, match="warm_start=False"):
            estimator.fit(X, Y)
    else:
        assert not hasattr(estimator, "resume_")
        weights_of(estimator, X, Y)
