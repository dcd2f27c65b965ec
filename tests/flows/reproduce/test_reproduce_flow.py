"""The Prefect flow `reproduce`; the tests of the flow of training run flows on a server."""

import logging
from pathlib import Path
from typing import Any

import pytest

from flows.orchestration import flows
from flows.reproduce.run import Paper


def test_parameters_make_a_form() -> None:
    schema = flows.reproduce_paper.parameters.model_dump()
    assert schema["required"] == ["config"]
    assert set(Paper.model_fields) == set(schema["definitions"]["Paper"]["properties"])


def test_every_table_becomes_an_artifact(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[dict[str, Any]] = []
    result = {"run": str(tmp_path), "tables": {"table_2": {"compared": 3, "within_1": 2, "below": [{"dataset": "d"}]}}}
    monkeypatch.setattr(flows, "get_run_logger", lambda: logging.getLogger("test"))
    monkeypatch.setattr(flows, "create_table_artifact", lambda rows, **about: made.append({"rows": rows, **about}))
    monkeypatch.setattr(flows.reproducing, "reproduce", lambda config, observer: result)
    config = Paper.model_validate({"paper": "X.1", "title": "A paper", "experiments": {}, "quick": {}})
    assert flows.reproduce_paper.fn(config) == result
    assert made[0]["key"] == "reproduce-x-1-table-2"  # Prefect takes lower case, digits and dashes
    assert made[0]["rows"] == [{"quantity": "", "result": "compared 3, within_1 2"}]
