"""`aucdist compare`: runs on the same test rows, one page."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.command_line import result_of, run

from aucdist.metrics import ScoreCounts
from aucdist.metrics.compare import auc_test, partial_auc_test
from aucdist.metrics.groups import group_auc, group_ndcg
from aucdist.metrics.partial import partial_auc
from aucdist.metrics.ranking import auc
from flows.compare import compared_lines

Y = np.repeat([1, -1], [40, 160])
IDS = np.random.default_rng(0).permutation(1000)[:200]


def search(best: dict[str, Any]) -> dict[str, Any]:
    table = [{"parameters": best, "folds": [0.9, 0.8]}]
    about = {"folds": {"number": 2, "seed": 0}, "metric": "auc", "test_over_train": 0.25}
    return {"best": best, "nested": None, "table": table, **about}


def make(folder: Path, name: str, seed: int, y: np.ndarray = Y, **more: Any) -> str:
    """Write what compare reads of a run."""
    scores = np.random.default_rng(seed).normal(size=len(y)) + 2.0 * (y == 1)
    about = {
        "name": name, "estimator": "E", "solver": "s", "seconds": {"fit": 1.5}, "threshold": 1.0, "n_samples": 500,
        "data": {"fingerprint": "f"}, **more,
    }  # fmt: skip
    made = folder / f"{name}-{seed}"
    made.mkdir(parents=True)
    (made / "metrics.json").write_text(json.dumps(about))
    order = np.random.default_rng(seed).permutation(len(y))  # runs need not have the same order
    table = pd.DataFrame({"row_id": IDS[: len(y)][order], "y": y[order].astype(np.int8), "score": scores[order]})
    table.to_parquet(made / "scores.parquet", index=False)
    return str(made)


def scores_of(made: str) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_parquet(f"{made}/scores.parquet").sort_values("row_id")
    return table["y"].to_numpy(), table["score"].to_numpy()


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    return [make(tmp_path, name, seed) for seed, name in enumerate("ab")]


def test_three_runs(runs: list[str], tmp_path: Path) -> None:
    runs = [*runs, make(tmp_path, "c", 2)]
    result = result_of("compare", *runs, "--output", tmp_path / "out")
    assert [(d["first"], d["second"]) for d in result["differences"]["auc"]] == [("a", "b"), ("a", "c"), ("b", "c")]
    y, first = scores_of(runs[0])
    expected = auc_test(y, first, scores_of(runs[1])[1])
    assert result["differences"]["auc"][0]["value"] == pytest.approx(expected.value)
    assert result["differences"]["auc"][0]["p_value"] == pytest.approx(expected.p_value)
    assert result["differences"]["auc"][0]["p_holm"] >= expected.p_value
    assert result["runs"][0]["auc"]["value"] == pytest.approx(auc(ScoreCounts.from_scores(y, first)))
    for row in result["runs"]:
        for name in ("auc", "average_precision", "g_mean", "balanced_accuracy"):
            low, high = row[name]["interval"]
            assert low < row[name]["value"] < high
    assert "Comparison of 3 runs" in (Path(result["run"]) / "report.html").read_text()
    assert json.loads((Path(result["run"]) / "comparison.json").read_text()) == result


def test_partial_auc_is_compared(runs: list[str], tmp_path: Path) -> None:
    result = result_of("compare", *runs, "--max-fpr", 0.2, "--output", tmp_path / "out")
    y, first = scores_of(runs[0])
    expected = partial_auc_test(y, first, scores_of(runs[1])[1], 0.2, standardized=True)
    pair = result["differences"]["partial_auc"][0]
    assert (pair["value"], pair["p_value"]) == pytest.approx((expected.value, expected.p_value))
    row = result["runs"][0]["partial_auc"]
    assert row["value"] == pytest.approx(partial_auc(ScoreCounts.from_scores(y, first), 0.2, standardized=True))
    assert row["interval"][0] < row["value"] < row["interval"][1]
    page = (Path(result["run"]) / "report.html").read_text()
    assert "partial AUC up to a false positive rate of 0.2" in page
    said = "--max-fpr must be greater than 0"
    assert said in run("compare", *runs, "--max-fpr", 0, "--output", tmp_path, code=2)[1]


def test_runs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    sound = make(tmp_path, "a", 0)
    fewer = make(tmp_path, "fewer", 1, y=Y[:100])
    other = make(tmp_path, "other", 1, y=np.roll(Y, 1))
    bare = Path(make(tmp_path, "bare", 1))
    (bare / "scores.parquet").unlink()
    damaged = Path(make(tmp_path, "damaged", 1))
    (damaged / "metrics.json").write_text("{")
    cut = Path(make(tmp_path, "cut", 1))
    (cut / "scores.parquet").write_bytes((cut / "scores.parquet").read_bytes()[:-8])
    weighted = Path(make(tmp_path, "weighted", 1))
    table = pd.read_parquet(weighted / "scores.parquet")
    table.assign(weight=0.5).to_parquet(weighted / "scores.parquet", index=False)
    for runs, message in (
        ((sound,), "name two or more run folders; the arguments name 1"),
        ((sound, sound + "/"), "a run is given twice"),
        ((sound, fewer), "have different test rows (100 and 200)"),
        ((sound, other), "have different test rows"),
        ((sound, bare), "has no scores.parquet"),
        ((sound, str(cut)), "parquet file. Copy the file again, or run the command that wrote it again"),
        ((sound, weighted), "test rows are weighted"),
        ((sound, tmp_path), f"the arguments name 1. These have no metrics.json: {tmp_path}"),
        ((sound, damaged), "damaged-1 is not the folder of a run"),
    ):
        assert message in run("compare", *runs, "--output", tmp_path / "out", code=2)[1]
    assert not (tmp_path / "out").exists()


def test_folders_that_are_no_runs_are_skipped_and_named(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    args = ["compare", *runs, tmp_path / "notes", "--output", tmp_path / "out"]
    assert result_of(*args)["skipped"] == [str(tmp_path / "notes")]
    stdout, _ = run(*args)
    assert f"skipped {tmp_path / 'notes'}: it is not the folder of a run" in stdout
    assert stdout.splitlines()[-1].startswith("report: ")


SAME = {"name": "same", "data": {"name": "d"}, "model": {"lam": 1.0, "tol": 0.1}, "output": "here"}


BINS = {"features": {"map": "bins", "interactions": 10}, "lam": 1.0}


@pytest.mark.parametrize(
    ("configs", "best", "differing"),
    [
        ((SAME, SAME | {"model": {"lam": 2.0, "tol": 0.1}, "output": "there"}), None, {"model.lam": ["1", "2"]}),
        ((SAME, SAME | {"model": {"lam": 1.0, "solver": "exact"}}), None,
         {"model.tol": ["0.1", "none"], "model.solver": ["none", "exact"]}),
        ((SAME, SAME | {"data": {"name": "e"}}), None, {"data.name": ["d", "e"]}),
        ((SAME, SAME | {"blocks": 4}), None, {"blocks": ["none", "4"]}),
        ((SAME, SAME | {"output": "there"}), None, {}),
        # A search is described by what it chose.
        ((SAME | {"model": {"lam": 5.0}},) * 2, {"lam": 1.0}, {"model.lam": ["5", "1"]}),
        # A map is one setting, however it is written.
        ((SAME | {"model": {"features": "bins"}}, SAME | {"model": {"features": {"map": "auto", "readable": True}}}),
         {"features": {"map": "bins", "interactions": 40}}, {"model.features": ["bins", "bins with 40 interactions"]}),
        ((SAME | {"model": {"lam": 1.0}},) * 2, BINS, {"model.features": ["none", "bins with 10 interactions"]}),
        # An operating point is one setting as well.
        ((SAME | {"operating_point": {"alerts": 0.05}}, SAME | {"operating_point": {"recall": 0.8}}), None,
         {"operating_point": ["alerts 0.05", "recall 0.8"]}),
    ],
)  # fmt: skip
def test_runs_of_one_name_are_named_by_their_folders_and_what_differs_is_said(
    tmp_path: Path, configs: tuple, best: dict | None, differing: dict[str, list[str]]
) -> None:
    more = {} if best is None else {"search": search(best)}
    runs = [make(tmp_path, "same", 1), make(tmp_path, "same", 2, **more)]
    for made, config in zip(runs, configs, strict=True):
        Path(made, "config.yaml").write_text(json.dumps(config))
    result = result_of("compare", *runs, "--output", tmp_path / "out")
    assert [row["name"] for row in result["runs"]] == ["same-1", "same-2"]
    assert {row["setting"]: list(row["values"].values()) for row in result["settings"]} == differing
    lines = compared_lines(result)
    for key, (first, second) in differing.items():
        assert f"The setting {key} differs: {first} in same-1, {second} in same-2." in lines
    # Folders of one name are told apart by their parents.
    (tmp_path / "else").mkdir()
    moved = str(Path(runs[1]).rename(tmp_path / "else" / "same-1"))
    shown = [row["name"] for row in result_of("compare", runs[0], moved, "--output", tmp_path / "out")["runs"]]
    assert shown == [runs[0], moved]


def test_only_parameters_that_an_estimator_has_are_compared(tmp_path: Path) -> None:
    models = [
        ("HingeClassifier", {"lam": 1.0, "penalty": "l2"}),
        ("HingeClassifier", {"lam": 1.0, "penalty": "l1"}),
        ("LinkClassifier", {"lam": 2.0, "link": "logit", "prior": None}),
        ("PairwiseHingeClassifier", {"lam": 1.0, "prior": 0.1}),
    ]
    runs = []
    for k, (estimator, parameters) in enumerate(models):
        runs.append(make(tmp_path, "abcd"[k], 1, estimator=estimator))
        Path(runs[-1], "config.yaml").write_text(json.dumps({"model": {"estimator": estimator, **parameters}}))
    result = result_of("compare", *runs, "--output", tmp_path / "out")
    assert {row["setting"]: row["values"] for row in result["settings"]} == {
        "model.estimator": {name: estimator for name, (estimator, _) in zip("abcd", models, strict=True)},
        "model.lam": {"a": "1", "b": "1", "c": "2", "d": "1"},
        "model.penalty": {"a": "l2", "b": "l1"},
        "model.prior": {"c": "none", "d": "0.1"},
    }
    assert "The setting model.penalty differs: l2 in a, l1 in b." in compared_lines(result)
    (page,) = (tmp_path / "out").rglob("report.html")
    assert ">model.penalty</th><td>l2</td><td>l1</td><td></td><td></td>" in page.read_text()


def test_two_thresholds_of_one_model_have_the_same_scores_and_decisions_of_their_own(tmp_path: Path) -> None:
    first, second = make(tmp_path, "low", 1), make(tmp_path, "high", 1)
    table = pd.read_parquet(f"{second}/scores.parquet")
    table.assign(score=table["score"] - 1.1).to_parquet(f"{second}/scores.parquet", index=False)
    result = result_of("compare", first, second, "--max-fpr", 0.1, "--output", tmp_path / "out")
    assert result["same_scores"] == [{"first": "low", "second": "high", "threshold_difference": pytest.approx(-1.1)}]
    for name in ("auc", "partial_auc", "average_precision"):
        (test,) = result["differences"][name]
        assert (test["value"], test["low"], test["high"], test["method"]) == (0.0, 0.0, 0.0, "same-scores")
    lines = compared_lines(result)
    assert lines[0] == (
        "low and high rank the test rows equally: their scores differ by a constant only. The threshold of low is 1.1 lower."
    )
    y, scores = scores_of(first)
    for name, threshold in (("low", 1.0), ("high", 2.1)):
        flagged = scores > threshold
        at = lines.index(f"{name}:")
        assert lines[at + 1] == f"  Flagged: {flagged.sum()} of 200 test rows ({flagged.mean() * 100:.1f} %)."
        n_right = int((y[flagged] == 1).sum())
        assert f": {n_right} of the {flagged.sum()} flagged rows are positive." in lines[at + 2]
        assert f": {40 - n_right} of 40 positive rows are missed." in lines[at + 3]
    page = (Path(result["run"]) / "report.html").read_text()
    assert "<h2>Decisions</h2>" in page
    assert page.count("<td>the scores are the same</td>") == 3
    assert "The threshold of low is 1.1 lower." in page
    # Scores of another model are not the same.
    other = make(tmp_path, "other", 2)
    result = result_of("compare", first, other, "--output", tmp_path / "out")
    assert result["same_scores"] == []
    assert result["differences"]["auc"][0]["method"] == "sign-flip"


def test_a_comparison_is_not_written_among_the_runs(
    runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Path(result_of("compare", *runs)["run"]).parent.name == "comparisons"


def test_runs_with_groups(runs: list[str], tmp_path: Path) -> None:
    for made in runs:
        table = pd.read_parquet(f"{made}/scores.parquet")
        grade = np.where(table["y"] > 0, 1.0 + table["row_id"] % 2, 0.0)
        table.assign(group=table["row_id"] % 20, grade=grade).to_parquet(f"{made}/scores.parquet", index=False)
    result = result_of("compare", *runs, "--output", tmp_path / "out")
    tables = [pd.read_parquet(f"{made}/scores.parquet").sort_values("row_id") for made in runs]
    for name, of in (("group_auc", group_auc), ("group_ndcg@10", group_ndcg)):
        first, second = (of(table["grade"], table["score"], groups=table["group"]) for table in tables)
        (test,) = result["differences"][name]
        assert test["value"] == pytest.approx(first.mean - second.mean)
        assert test["low"] < test["value"] < test["high"]
        assert (test["p_value"] < 0.05) == (not test["low"] <= 0 <= test["high"])
    assert "AUC within groups" in (Path(result["run"]) / "report.html").read_text()
    pd.read_parquet(f"{runs[1]}/scores.parquet").assign(group=0).to_parquet(f"{runs[1]}/scores.parquet", index=False)
    error = run("compare", *runs, "--output", tmp_path / "out", code=2)[1]
    assert "have different groups of the same test rows" in error.replace("\n", " ")
