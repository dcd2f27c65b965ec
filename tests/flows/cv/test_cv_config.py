"""The configuration of a search, and what it refuses before anything runs."""

import base64
import logging
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner
from support.searches import load_cv

from aucdist.errors import InputError
from flows.cli import app
from flows.compute.stages import call_stage
from flows.config.loading import configs_folder, to_yaml
from flows.cv.config import CvConfig
from flows.cv.run import cross_validate
from flows.orchestration import flows
from flows.progress.console import LineObserver, Tasks


def test_every_configuration_loads_and_loads_again_as_resolved(tmp_path: Path) -> None:
    for path in configs_folder("cv").glob("*.yaml"):
        config = load_cv(path.stem)
        assert config.name == path.stem
        again = tmp_path / path.name
        again.write_text(to_yaml(config))
        assert load_cv(str(again)).points == config.points


def test_a_spread_is_even_on_a_log_scale() -> None:
    config = load_cv("digits", ["grid.lam={first: 10, last: 1e-4, number: 11}"])
    assert [point["lam"] for point in config.points][:4] == [10.0, 3.162, 1.0, 0.3162]
    assert config.points[-1] == {"lam": 1e-4}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("grid={}", "the grid is empty"),
        ("grid.lam=[]", "the grid has no values for lam"),
        ("grid.lamb=[1, 2]", "unknown parameter of PairwiseHingeClassifier in the grid 'lamb'. Did you mean 'lam'"),
        ("grid.lam=[1, -2]", "lam is -2"),
        ("grid.lam={first: 1, last: 0, number: 3}", "grid.lam"),
        ("metric=acu", "unknown metric 'acu'. Did you mean 'auc'"),
        ("metric=log_loss", "metric 'log_loss' needs probabilities, but PairwiseHingeClassifier"),
        ("metric=partial_auc", "metric 'partial_auc' needs max_fpr"),
        (
            "max_fpr=0.1",
            "max_fpr applies to metric partial_auc and shrunk_partial_auc and two_way_partial_auc and recall_at_fpr, not to",
        ),
        ("max_fpr=2", "max_fpr"),
        ("metric=partial_auc@x", "'x' is not max_fpr"),
        ("metric=precision_at_k", "metric 'precision_at_k' needs k, a number of rows"),
        ("min_tpr=0.3", "min_tpr applies to metric two_way_partial_auc, not to 'auc'"),
        ("folds.number=1", "folds.number"),
        ("folds={time: a, repeats: 2}", "`repeats` has no effect with `time`"),
        ("folds={groups: a, duplicates: together}", "give either `groups` or `duplicates: together`"),
        ("folds={gap_rows: 3}", "`gap_rows` and `gap_time` need `time`"),
        ("folds={groups: a, time: a}", "`groups` and `time` name the same column"),
        ("grid={tol: [1e-3, 1e-2]}", "the grid needs `lam`"),
        ("halving={first_passes: 5}", "give either `nested` or `halving`"),
        ("rule=two-se", "rule"),
        ("fold.number=3", "unknown key 'fold'. Did you mean 'folds'"),
    ],
)
def test_what_is_refused(setting: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_cv("digits", [setting])
    assert message in str(caught.value)
    assert "digits.yaml" in str(caught.value)


def test_masks_are_for_solvers_that_read_in_place() -> None:
    settings = ["placement=masks", "model={solver: sdcd}", "rule=best"]
    with pytest.raises(InputError, match=r"placement `masks` needs a solver .*PairwiseHingeClassifier: all-pairs\)"):
        load_cv("digits", settings)
    with pytest.raises(InputError, match="placement `masks`"):
        load_cv("digits", ["placement=masks", "grid.calibration=[null, logit]"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["folds.number=200"], "139 positive rows cannot be divided into 200 folds"),
        (["nested=130"], "111 positive rows cannot be divided into 130 folds"),
        (["folds.groups=pixel_0_9"], "unknown column 'pixel_0_9'"),
        (["folds.groups=pixel_0_1"], "groups straddle training and test rows"),
        (["data.scale=none", "data.log1p=[nothing]"], "unknown feature in log1p 'nothing'"),
    ],
)
def test_folds_that_cannot_be_made_end_with_2_and_leave_nothing(
    settings: list[str], message: str, tmp_path: Path
) -> None:
    arguments: list[str] = ["cv", "digits", "--output", str(tmp_path / "runs")]
    for setting in ("cluster=none", *settings):
        arguments += ["--set", setting]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_parameters_make_a_form() -> None:
    from flows.orchestration.flows import cross_validate

    schema: dict[str, Any] = cross_validate.parameters.model_dump()
    assert schema["required"] == ["config"]
    assert set(CvConfig.model_fields) == set(schema["definitions"]["CvConfig"]["properties"])


# ---- the Prefect flow round a search; that a server runs flows at all is shown with the flow of training


QUICK = [
    "cluster=none", "folds.repeats=1", "folds.number=2", "nested=null", "model.tol=0.1", "grid.lam=[1.0, 0.1]",
]  # fmt: skip


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What artifacts were made, by key."""
    found: dict[str, Any] = {}

    def make(content: Any, key: str, description: str) -> Any:
        found[key] = content
        return uuid4()

    monkeypatch.setattr(flows, "get_run_logger", lambda: logging.getLogger("test"))
    monkeypatch.setattr(flows, "run_as_task", call_stage)
    for kind in ("markdown", "table", "progress", "image"):
        monkeypatch.setattr(flows, f"create_{kind}_artifact", make)
    updates: list[Any] = []
    found["updates"] = updates
    monkeypatch.setattr(flows, "update_progress_artifact", lambda at, percent, description: updates.append(percent))
    return found


def test_artifacts_of_a_search(made: dict[str, Any], tmp_path: Path) -> None:
    result = flows.cross_validate.fn(load_cv("digits", QUICK, str(tmp_path)))
    verdict = made["cross-validate-verdict"]
    assert verdict.startswith("Chosen: lam ")
    assert "| Test AUC | 0.9" in verdict
    assert [row["lam"] for row in made["cross-validate-table"]] == [1.0, 0.1]
    assert made["cross-validate-table"][0]["fold 2"] == result["table"][0]["folds"][1]
    assert made["cross-validate-progress"] == 0.0
    assert made["updates"] == [50.0, 100.0]
    head, image = made["cross-validate-roc"].split(",")
    assert head == "data:image/svg+xml;base64"
    svg = base64.b64decode(image).decode()
    assert svg.startswith("<svg")
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert "var(--" not in svg
    assert "#c24e00" in svg
    plain = cross_validate(
        load_cv("digits", QUICK, str(tmp_path)), flows.ArtifactObserver(LineObserver(lambda text: None), "again")
    )
    assert (plain["table"], plain["tasks"]["kept"]) == (result["table"], 2)


def test_progress_in_words(made: dict[str, Any]) -> None:
    lines: list[str] = []
    artifact = flows.ArtifactObserver(LineObserver(lines.append), "x")
    artifact.tasks(Tasks(0, 4, 0, "", None))
    artifact.tasks(Tasks(4, 4, 1, "best so far auc 0.9 at lam 1", 0.0))
    assert lines == ["  0 of 4 tasks", "  4 of 4 tasks, 1 failed, best so far auc 0.9 at lam 1"]
    assert made["updates"] == [100.0]
