"""The parameter `solver`: a name, a mapping or an object, and what scikit-learn expects of its parameters."""

import re
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from support.fits import fitted
from support.small_sets import blocks_of, small
from support.tables import table_beside

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS, PairwiseHingeClassifier, PairwiseRampClassifier, lam_path
from aucdist.pairs import AllPairs, RampLBFGS
from aucdist.pairs.loss import RAMP
from aucdist.pairs.penalty import L2
from aucdist.pairs.problem import PairObjective
from aucdist.pairs.smooth import SmoothPairProblem
from aucdist.papers.sdcd import SDCD
from aucdist.papers.sdcd.kernels import dual_steps
from aucdist.papers.tpauc import Exact
from aucdist.search.folds import masked_blocks
from aucdist.search.schedule import paths_of, settings_of_grid
from aucdist.solvers.base import Round, Solver, solver_table

SOLVERS = [(name, solver) for name, kind in ESTIMATORS.items() for solver in kind.solvers]


class PlainDescent(Solver):
    name = "plain"
    objective = "pairwise ramp"

    def __init__(self, *, step=1.0):
        self.step = step

    def rounds(self, blocks, lam, start=None):
        problem, step = SmoothPairProblem(blocks, PairObjective(RAMP, penalty=L2(lam))), self.step
        point = problem.evaluate(np.zeros(blocks.n_features))
        for number in range(1, 40):
            yield Round(point.w, point.value, 0.0, number)
            after = problem.evaluate(point.w - step * point.gradient)
            step = 2.0 * step if after.value < point.value else 0.25 * step
            point = after if after.value < point.value else point


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_solvers_of_an_estimator_minimise_one_objective_and_have_their_names(name):
    solvers = ESTIMATORS[name].solvers
    assert len({solver.objective for solver in solvers.values()}) == 1
    assert all(solver.name == key for key, solver in solvers.items())
    assert ESTIMATORS[name]().solver in solvers


@pytest.mark.parametrize(("name", "solver"), SOLVERS)
def test_parameters_are_seen_set_cloned_and_written(name, solver):
    kind = ESTIMATORS[name]
    model = kind(solver=solver)
    own = kind.solvers[solver]().get_params()
    seen = {key: value for key, value in model.get_params().items() if key.startswith("solver__")}
    assert seen == {f"solver__{key}": value for key, value in own.items()}
    assert model.get_params(deep=False)["solver"] == solver
    assert model.plain_params()["solver"] == solver
    for key in own:
        changed = clone(model).set_params(**{f"solver__{key}": 77})
        assert changed.get_params()[f"solver__{key}"] == 77
        assert model.solver == solver, "the clone is another object"
        assert clone(changed).get_params()[f"solver__{key}"] == 77
        plain = changed.plain_params()["solver"]
        assert plain == {"name": solver, **own, key: 77}
        assert kind(solver=plain).resolved_solver.get_params() == changed.solver.get_params()


def test_a_name_a_mapping_and_an_object_give_the_same_bits():
    forms = ({"name": "sdcd", "epochs": 4}, SDCD(epochs=4))
    models = [PairwiseHingeClassifier(solver=form, random_state=3) for form in forms]
    models.append(PairwiseHingeClassifier(solver="sdcd", random_state=3).set_params(solver__epochs=4))
    models.append(PairwiseHingeClassifier(random_state=3).set_params(solver__epochs=4, solver="sdcd"))
    assert len({fitted(model, blocks_of(*small())).coef_.tobytes() for model in models}) == 1
    assert forms[0] == {"name": "sdcd", "epochs": 4}, "a fit changes no parameter"


def test_a_solver_of_ones_own_is_fitted_cloned_and_searched():
    own = fitted(PairwiseRampClassifier(solver=PlainDescent(step=0.3), lam=0.1), blocks_of(*small()))
    best = fitted(PairwiseRampClassifier(lam=0.1, tol=1e-8), blocks_of(*small()))
    assert own.certificate_.primal == pytest.approx(best.certificate_.primal, rel=1e-2)
    assert clone(own).set_params(solver__step=2.0).solver.step == 2.0
    assert own.solver.step == 0.3
    X, y = small(30, 30)
    search = GridSearchCV(own, {"solver__step": [1e-9, 1.0]}, scoring="roc_auc", cv=3)
    fitted(search, X, y)
    assert search.best_estimator_.solver.step == search.best_params_["solver__step"]
    assert len(search.cv_results_["rank_test_score"]) == 2


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        ("sdca", r"unknown solver 'sdca'. Did you mean 'sdcd'"),
        ({"epochs": 3}, "has no `name`: give one of all-pairs, sdcd"),
        ({"name": "sdca"}, "unknown solver 'sdca'"),
        ({"name": "sdcd", "epoch": 3}, "unknown parameter of solver 'sdcd': 'epoch'. Did you mean 'epochs'"),
        ({"name": "msgd", "average": True}, "average applies to solver sdcd, sdcd-perm, but 'msgd' has epochs"),
        ({"name": "all-pairs", "epochs": 3}, "epochs applies to .*, but 'all-pairs' has no parameters"),
        ({"name": "sdcd", "epochs": 0}, "epochs must be .*; got 0"),
        (SDCD(epochs=0), "epochs must be .*; got 0"),
        (
            RampLBFGS(),
            "minimises the pairwise ramp, but this estimator minimises the pairwise hinge: use one of AllPairs, SDCD",
        ),
        (Exact(), "minimises the pairwise square"),
        (AllPairs, "unknown solver <class"),
        (None, "unknown solver None"),
    ],
)
def test_wrong_solvers_are_refused(solver, message):
    with pytest.raises(InputError, match=message):
        PairwiseHingeClassifier(solver=solver).fit(*small())


def test_a_wrong_solver_can_still_be_printed_and_cloned():
    model = PairwiseHingeClassifier(solver="sdca")
    assert "sdca" in repr(model)
    assert clone(model).get_params()["solver"] == "sdca"


@pytest.mark.parametrize(
    "use",
    [
        lambda: PairwiseHingeClassifier(epochs=3),
        lambda: PairwiseHingeClassifier(solver="sdcd", epochs=3),
        lambda: PairwiseHingeClassifier().set_params(epochs=3),
        lambda: settings_of_grid(PairwiseHingeClassifier(), {"epochs": [3]}),
    ],
)
def test_a_parameter_that_moved_says_where_to(use):
    message = (
        "epochs is a parameter of solver sdcd, sdcd-perm, msgd, .*: write solver={'name': 'sdcd', 'epochs': ...}, SDCD("
    )
    with pytest.raises(InputError, match=re.sub(r"([{(])", r"\\\1", message)):
        use()


@pytest.mark.parametrize(("parameter", "said"), table_beside(__file__))
def test_a_parameter_of_another_package_is_refused_with_the_name_here(parameter, said):
    with pytest.raises(InputError, match=said):
        PairwiseHingeClassifier(**{parameter: 1})
    if "PairwiseHingeClassifier" not in said:  # scikit-learn lists the parameters
        with pytest.raises(InputError, match=said):
            PairwiseHingeClassifier().set_params(**{parameter: 1})


@pytest.mark.parametrize("features", ["bins", {"map": "bins", "bins": 4}])
def test_a_search_sets_parameters_of_a_map_by_name_or_dict(features):
    X, y = small()
    search = GridSearchCV(PairwiseHingeClassifier(features=features), {"features__bins": [2, 8]}, cv=2)
    model = search.fit(X, y).best_estimator_
    assert model.features.bins == search.best_params_["features__bins"]
    both = PairwiseHingeClassifier().set_params(features=features, features__bins=3)
    assert both.features.bins == 3
    with pytest.raises(
        InputError, match="features__bins is a parameter of a feature map, and features=None names no map"
    ):
        PairwiseHingeClassifier().set_params(features__bins=3)
    with pytest.raises(ValueError, match="Invalid parameter 'foo' for estimator BinExpander"):
        PairwiseHingeClassifier(features=features).set_params(features__foo=3)


def test_the_certificate_says_what_it_proves():
    model = PairwiseHingeClassifier().fit(*small())
    c = model.certificate_
    excess = 100 * (c.primal / c.dual - 1)
    bound = re.fullmatch(
        r"<Certificate: the objective, (.*), is at most (.*) % above the minimum \(lower bound (.*), status converged\)>",
        repr(c),
    )
    assert bound is not None
    assert [float(text) for text in bound.groups()] == pytest.approx([c.primal, excess, c.dual], rel=0.06)
    unbounded = PairwiseRampClassifier().fit(*small()).certificate_
    assert "no lower bound above 0 is known" in repr(unbounded)


def test_points_of_a_grid_name_solvers_and_their_parameters():
    model = PairwiseHingeClassifier(lam=0.1)
    points = settings_of_grid(model, {"solver": ["sdcd", "sdcd-perm"], "solver__epochs": [2, 3]})
    models = [fitted(clone(model).set_params(**point), blocks_of(*small())) for point in points]
    assert [model.history_["round"].iloc[-1] for model in models] == [2, 3, 2, 3]
    with pytest.raises(InputError, match="epochs applies to solver sdcd"):
        settings_of_grid(model, {"solver__epochs": [2]})


# ---- what a row of a table of solvers declares is what the solver does ------------------------


X, Y = small(n_pos=22, n_neg=26)  # fewer positives, and a few passes of Pegasos find nothing better than zero


def model(name, solver, **parameters):
    kind = ESTIMATORS[name]
    own = {"LinkClassifier": {"xi": -0.2}, "MarginMeanClassifier": {"sampler": None, "solver__n_outer": 3}}.get(
        name, {}
    )
    own |= {"psa": {"penalty": "l1", "solver__radius": 2.0}, "pegasos": {"lam": 0.1}}.get(solver, {})
    return kind().set_params(**{"solver": solver, "tol": 1e-4, "max_passes": 6, "random_state": 0} | own | parameters)


def weights_of(estimator, *data):
    return fitted(estimator, *data).coef_


@pytest.mark.parametrize(("name", "solver"), SOLVERS)
def test_sample_weights_count_or_are_refused(name, solver):
    able = ESTIMATORS[name].solvers[solver].accepts_weights
    weight = np.where(np.arange(len(Y)) % 3 == 0, 5.0, 0.5)
    if able:
        plain, weighted = (weights_of(model(name, solver), X, Y, w) for w in (None, weight))
        assert not np.allclose(plain, weighted)
    else:
        said = f"solver '{solver}' does not support sample weights; solvers that do: .*all-pairs"
        with pytest.raises(InputError, match=said):
            model(name, solver).fit(X, Y, weight)


@pytest.mark.parametrize(("name", "solver"), [c for c in SOLVERS if ESTIMATORS[c[0]].solvers[c[1]].ignores_zero_weight])
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


@pytest.mark.parametrize(("name", "solver"), SOLVERS)
def test_random_solvers_alone_depend_on_the_seed(name, solver):
    first, other = (weights_of(model(name, solver, random_state=seed), X, Y) for seed in (0, 1))
    # Buffers that hold all rows, and covariances that need no sketch, leave nothing to draw.
    draws_nothing = name == "PairwiseHingeClassifier" and solver in ("oam-seq", "oam-gra")
    if not draws_nothing:
        assert (first.tobytes() != other.tobytes()) == ESTIMATORS[name].solvers[solver].is_random


@pytest.mark.parametrize(("name", "solver"), SOLVERS)
def test_a_path_is_one_task_and_others_are_one_each(name, solver):
    estimator = model(name, solver)
    if "lam" not in estimator.get_params():
        pytest.skip("there is no lam to go along")
    points = [{"lam": 1e-1}, {"lam": 1e-2}]
    if not hasattr(ESTIMATORS[name].solvers[solver], "path"):
        assert paths_of(estimator, points) == [[0], [1]]
        with pytest.raises(InputError, match=r"lam_path (needs solver '(all-pairs|exact)'|does not support)"):
            lam_path(estimator, X, Y, lams=[1e-1])
    else:
        assert paths_of(estimator, points) == [[0, 1]]
        with warnings.catch_warnings(action="ignore"):
            assert [m.lam for m in lam_path(estimator, X, Y, lams=[1e-2, 1e-1])] == [1e-2, 1e-1]


@pytest.mark.parametrize(("name", "solver"), SOLVERS)
def test_a_solver_starts_from_weights_or_refuses_a_warm_start(name, solver):
    if "warm_start" not in ESTIMATORS[name]().get_params():
        return
    if ESTIMATORS[name].solvers[solver].accepts_start:
        estimator = model(name, solver, warm_start=True)
        first, reached = weights_of(estimator, X, Y), estimator.certificate_.primal
        second = weights_of(estimator, X, Y)
        if solver.startswith("oam"):  # their history has the end of their only pass
            assert (first != second).any()
        else:
            assert estimator.history_["primal"].iloc[0] == pytest.approx(reached, rel=1e-12)
        with pytest.raises(InputError, match="warm_start"):
            estimator.fit(X[:, 1:], Y)
    else:
        with pytest.raises(InputError, match=r"always starts from zero \(warm_start must be False\)"):
            model(name, solver, warm_start=True).fit(X, Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "solver"), SOLVERS)
def test_solvers_take_groups_and_directions_or_refuse_them(name, solver):
    refused = pytest.raises((ValueError, TypeError), match=r"groups|monoton")
    solver_class = ESTIMATORS[name].solvers[solver]
    with nullcontext() if solver_class.accepts_groups else refused:
        model(name, solver).fit(X, Y, groups=np.arange(len(Y)) % 5)
    with nullcontext() if solver_class.accepts_signs else refused:
        model(name, solver).set_params(monotone={0: "increasing"}).fit(X, Y)


@pytest.mark.parametrize("parameter", [{"max_fpr": 0.1}, {"max_false_positives": 3}, {"grade_weight": "one"}])
def test_inherited_parameters_that_no_solver_takes_are_refused(parameter):
    class Plain(PairwiseRampClassifier):
        solvers = solver_table(PlainDescent)

    name = next(iter(parameter))
    said = f"{name} applies to no solver of this estimator, not to 'plain': set {name}=None"
    with pytest.raises(InputError, match=said):
        Plain(solver="plain", **parameter).fit(*small(5, 9))


def test_a_whole_lam_compiles_no_kernel_a_second_time():
    compiled = []
    for lam in (1.0, 1):
        fitted(PairwiseHingeClassifier(solver="sdcd", lam=lam, max_passes=3), *small(5, 9))
        compiled.append(len(dual_steps.signatures))
    assert compiled[0] == compiled[1]
