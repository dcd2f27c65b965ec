"""Runs of an estimator that scales and samples for itself, has two lams, and may have a kernel."""

from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_digits
from support.runs import searched, trained
from support.searches import load_cv

from aucdist.errors import InputError
from aucdist.model import load_model
from flows.json_values import jsonable
from flows.run_folder.folder import read_about
from flows.train.config import load_train

MODEL = "model={estimator: MarginMeanClassifier, solver: {name: svrg, n_outer: 20}, random_state: 0, tol: 0.05}"
SETTINGS = ["cluster=none", "blocks=4", "data.scale=none", MODEL]
SEARCH = ["metric=g_mean", "rule=best", "nested=null"]


def run(output: Path, *settings: str) -> dict[str, Any]:
    return trained("digits", *SETTINGS, *settings, output=output)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("runs"), "data.test=null")


def test_the_saved_model_calls_rows_as_the_metrics_say(whole: dict[str, Any]) -> None:
    folder = Path(whole["run"])
    assert folder.name.endswith("-digits-svrg")
    called = load_model(str(folder / "model")).predict(load_digits(return_X_y=True)[0])
    details = read_about(whole["run"])["details"]["train"]
    assert (called == 1).sum() == details["confusion"]["tp"] + details["confusion"]["fp"]
    assert details["g_mean"] > 0.9


def test_null_is_a_choice_and_stays_one(whole: dict[str, Any], tmp_path: Path) -> None:
    """All rows and no scaling; a configuration that is read again says the same."""
    found = run(tmp_path, "data.test=null", "model.sampler=null", "model.scale=null")
    parameters = load_model(f"{found['run']}/model").about["parameters"]
    assert (parameters["sampler"], parameters["scale"]) == (None, None)
    assert found["certificate"] != whole["certificate"]
    again = trained(f"{found['run']}/config.yaml", output=tmp_path)
    weights = [Path(result["run"], "model/weights.npy").read_bytes() for result in (found, again)]
    assert weights[0] == weights[1]


def test_a_search_keeps_null(tmp_path: Path) -> None:
    settings = ["model.sampler=null", "grid={lam1: [0.0, 1.0]}", "folds={number: 2}", *SEARCH]
    found = searched("digits", *SETTINGS, *settings, output=tmp_path)
    assert found["best"]["lam1"] in (0.0, 1.0)
    parameters = load_model(f"{found['run']}/model").about["parameters"]
    assert parameters["sampler"] is None
    assert parameters["lam1"] == jsonable(found["best"]["lam1"])


def test_kernels_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"kernel is 'rbf'.*fit it in Python: MarginMeanClassifier\(kernel='rbf'\)"):
        load_train("digits", [*SETTINGS, "model.kernel=rbf"])
    with pytest.raises(InputError, match="kernel is 'rbf'"):
        load_cv("digits", [*SETTINGS, *SEARCH, "grid={kernel: [linear, rbf]}"])
