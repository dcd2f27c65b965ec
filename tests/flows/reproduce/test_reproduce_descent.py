"""The kind `descent`: its tasks, its curves, and where its claims hold on made-up results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.hinge_twins import l1_minimum
from support.runs import page_of
from support.small_paper import load_paper, paper, rows, run, write

from aucdist import HingeClassifier
from aucdist.data.shards.reading import read
from aucdist.data.sources import find_source
from aucdist.errors import InputError
from flows.reproduce.curves import REFERENCE, Descent, GoalClaim
from flows.reproduce.kind import TaskKey, version_of_data

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def model(solver: str, **parameters: Any) -> dict[str, Any]:
    fixed = {"estimator": "HingeClassifier", "penalty": "l1", "fit_intercept": False}
    return {"model": fixed | {"solver": solver} | parameters}


def descent(**changes: Any) -> dict[str, Any]:
    """Return a paper of one descent on the digits and on a data set that is absent."""
    figure = {
        "kind": "descent",
        "title": "Figure 11: descent",
        "systems": {
            "scd": model("scd") | {"grid": {"solver__eta": [1e-3, 1.0, 1e3]}},
            "psa": model("psa", solver__radius=0.5, solver__eta=1.0) | {"relative_radius": True},
        },
        "datasets": {"eight": {"name": "digits", "scale": "maxabs"}, "absent": {"name": "astro-physics"}},
        "reference": "linear programme",
        "sweeps": 12,
        "seeds": 2,
        "claims": [{"text": "The first is first.", "system": "scd", "than": ["psa"], "zeros_within": 0.5}],
    }
    return paper(experiments={"eleven": figure | changes})


@pytest.mark.filterwarnings("ignore:the AUC of the training rows")  # the paper has no intercept
def test_a_task_is_a_fit(tmp_path: Path) -> None:
    kind = load_paper(str(write(tmp_path, descent()))).experiments["eleven"]
    tasks = dict(kind.tasks({name: version_of_data(ref) for name, ref in kind.datasets.items()}))
    runs = [("scd", 0), ("scd", 1), ("psa", 0)]
    assert set(tasks) == {TaskKey("eight", REFERENCE), *(TaskKey("eight", *run) for run in runs)}
    block = read(find_source("digits")).block
    X = block.X / np.maximum(np.abs(block.X).max(axis=0), 1e-300)

    def fitted(solver: str, passes: int, **parameters: Any) -> HingeClassifier:
        how = {"penalty": "l1", "solver": solver, "lam": "1/n", "max_passes": passes, "fit_intercept": False}
        return HingeClassifier().set_params(**how, **parameters).fit(X, block.y)

    reference = Descent.run_task(tasks[TaskKey("eight", REFERENCE)])
    lowest, _ = l1_minimum(X, block.y, 1 / 1797)
    assert reference["primal"] == pytest.approx(lowest, rel=1e-9)
    assert reference["dual"] == pytest.approx(lowest, rel=1e-9)
    assert 0.0 < reference["length"] < lowest * 1797  # there are several minima
    assert reference["shape"] == [1797, 64]
    result = Descent.run_task(tasks[TaskKey("eight", "scd", 1)])
    ends = [
        fitted("scd", 24, solver__eta=eta, random_state=0).history_["primal"].iloc[:12].min()
        for eta in (1e-3, 1.0, 1e3)
    ]
    assert result["chosen"] == np.argmin(ends)
    meant = fitted("scd", 24, solver__eta=[1e-3, 1.0, 1e3][result["chosen"]], random_state=1).history_.iloc[:12]
    np.testing.assert_allclose(result["objective"], np.minimum.accumulate(meant["primal"]))
    np.testing.assert_allclose(result["zeros"], meant["zeros"])
    assert len(result["seconds"]) == 12
    projected = Descent.run_task(tasks[TaskKey("eight", "psa", 0)])
    meant = fitted("psa", 24, solver__eta=1.0, solver__radius=0.5 * reference["length"]).history_.iloc[:12]
    np.testing.assert_allclose(projected["objective"], np.minimum.accumulate(meant["primal"]))


def test_the_reference_may_be_a_fit(tmp_path: Path) -> None:
    kind = load_paper(str(write(tmp_path, descent(reference=model("scd", max_passes=60))))).experiments["eleven"]
    tasks = dict(kind.tasks({"eight": version_of_data(kind.datasets["eight"])}))
    reference = Descent.run_task(tasks[TaskKey("eight", REFERENCE)])
    block = read(find_source("digits")).block
    X = block.X / np.maximum(np.abs(block.X).max(axis=0), 1e-300)
    how = {"penalty": "l1", "solver": "scd", "lam": "1/n", "max_passes": 60, "fit_intercept": False}
    known = HingeClassifier(**how, random_state=0).fit(X, block.y)
    certificate = known.certificate_
    assert (reference["primal"], reference["dual"]) == pytest.approx((certificate.primal, certificate.dual))
    assert reference["length"] == pytest.approx(np.abs(known.coef_).sum())


def test_the_page_of_a_descent(tmp_path: Path) -> None:
    result = run(write(tmp_path, descent()))
    for words in (
        "Figure 11: descent", "eight: sweeps", "eight: seconds", "eight: zeros", "not run here", "1797 x 64, lam 0.000556",
        "The first is first: data sets 1, ",
    ):  # fmt: skip
        assert words in page_of(result)
    assert "The first is first." in result["tables"]["eleven"]
    table = rows(result["run"], "eleven")
    assert [(r["dataset"], r["system"]) for r in table] == [("eight", "scd"), ("eight", "psa")]
    assert all(float(r["excess"]) >= 0.0 for r in table)


# ---- claims -------------------------------------------------------------------------------------------------------------


def made_up(objective: list[float], pace: float = 1.0, zeros: float = 0.9) -> dict[str, Any]:
    n = len(objective)
    return {"objective": objective, "seconds": [pace * k for k in range(1, n + 1)], "zeros": [zeros] * n, "chosen": 0}


def results_with(kind, *runs, shape=(100, 5)):
    reference = {"primal": 1.0, "dual": 0.9, "lam": 0.01, "length": 1.0, "shape": list(shape)}
    results = {TaskKey("eight", REFERENCE): reference}
    for name, result in runs:
        seed = sum(key.system == name for key in results)
        results[TaskKey("eight", name, seed)] = result
    return results


@pytest.fixture
def kind(tmp_path: Path) -> Descent:
    experiment = load_paper(str(write(tmp_path, descent(goal=0.01, sweeps=4)))).experiments["eleven"]
    assert isinstance(experiment, Descent)
    return experiment


SLOW, FAST, NEVER = [3.0, 2.0, 1.5, 1.005], [2.0, 1.005, 1.001, 1.0], [3.0, 2.5, 2.0, 1.5]


@pytest.mark.parametrize(
    ("scd", "psa", "counts"),
    [
        (made_up(FAST), made_up(SLOW), (1, 1, 1)), (made_up(SLOW), made_up(FAST, zeros=0.1), (0, 0, 0)),
        (made_up(FAST, pace=9.0), made_up(SLOW), (1, 0, 1)), (made_up(SLOW), made_up(NEVER), (1, 1, 1)),
        (made_up(NEVER), made_up([3.0, 2.5, 2.0, 1.6]), (1, 1, 1)), (made_up(FAST, zeros=0.3), made_up(SLOW), (1, 1, 0)),
    ],
)  # fmt: skip
def test_where_a_claim_holds(kind, scd, psa, counts):
    (counted,) = kind.report(results_with(kind, ("scd", scd), ("scd", scd), ("psa", psa))).counts.values()
    assert counted == dict(zip(("data_sets", "sweeps", "seconds", "as_sparse"), (1, *counts), strict=True))


@pytest.mark.parametrize(("shape", "concerned"), [((100, 5), False), ((5, 100), True), ((5, 5), False)])
def test_a_claim_may_be_about_wide_data_only(kind: Descent, shape: tuple[int, int], concerned: bool) -> None:
    claim = GoalClaim(text="Wide.", system="scd", than=["psa"], rows="fewer than features")
    wide = kind.model_copy(update={"claims": [claim]})
    results = results_with(kind, ("scd", made_up(FAST)), ("psa", made_up(SLOW)), shape=shape)
    (counts,) = wide.report(results).counts.values()
    assert counts == {"data_sets": int(concerned), "sweeps": int(concerned), "seconds": int(concerned)}


def test_the_goal_is_counted_from_the_best_known(kind: Descent) -> None:
    """One run gets below the reference, and one converges before its sweeps are over."""
    results = results_with(
        kind, ("scd", made_up([2.0, 1.0, 0.99])), ("scd", made_up([2.0, 1.02, 0.99, 0.99])), ("psa", made_up(SLOW))
    )
    scd, psa = (cell for _, cell in kind.report(results).lines.iterrows())
    assert (scd.sweeps, scd.seconds, scd.excess) == (3, 3, 0)
    assert psa[["sweeps", "seconds"]].isna().all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"claims": [{"text": "x", "system": "scd", "than": []}]}, "claims.0.than"),
        ({"lam": "1/m"}, "lam"),
    ],
)  # fmt: skip
def test_wrong_configurations_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_paper(str(write(tmp_path, descent(**changes))))


@pytest.mark.parametrize("quick", [False, True])
def test_paper_001_is_valid(quick: bool) -> None:
    experiments = load_paper("001", quick=quick).experiments
    assert set(experiments) == {"figure1", "figure2"}
    assert all("ccat-1000" in e.datasets for e in experiments.values())
