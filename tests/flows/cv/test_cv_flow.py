"""The Prefect flow round a search; that a server runs flows at all is shown with the flow of training."""

import base64
import logging
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.searches import load_cv

from flows.compute.stages import call_stage
from flows.cv.run import cross_validate
from flows.orchestration import flows
from flows.progress.console import LineObserver, Tasks

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


@pytest.mark.usefixtures("rendered")
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
