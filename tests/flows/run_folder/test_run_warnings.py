"""The warnings of a run: each is there where it holds, and only there, in the run folder and in what other commands print."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.command_line import result_of, run

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.intervals import Estimate
from aucdist.model import load_model
from aucdist.report.text import COLUMN_NOTES, warning_texts
from flows.run_folder.results import ClassEvaluation
from flows.run_folder.run_warnings import choice_at_end, run_warnings

FILES_WITH_KEYS = ("aucdist/drift/leaks.py", "flows/run_folder/run_warnings.py", "flows/init/run.py")


def counts(values: np.ndarray) -> ScoreCounts:
    return ScoreCounts.from_scores(np.where(np.arange(len(values)) % 10 == 0, 1, -1), values, None)


def fitted(*low: float | None, values: np.ndarray | None = None, tested: bool = True, **more: Any) -> SimpleNamespace:
    """Return a run; `low`: the lower end of the interval of the AUC of each class."""
    rows = counts(np.linspace(-1.0, 1.0, 100) if values is None else values)
    classes = [
        ClassEvaluation(
            rows, rows if tested else None, end and Estimate(0.9, end, 0.95, 0.95, "score"), rows, None, None
        )
        for end in low
    ]
    names = tuple(f"c{k}" for k in range(len(low))) if len(low) > 1 else ()
    converged = SimpleNamespace(certificate_=SimpleNamespace(status="converged"))
    about = {
        "search": None, "warned": [], "leaks": [],
        "rows": SimpleNamespace(schema=SimpleNamespace(classes=names), source=SimpleNamespace(drop=["id"])),
        "config": SimpleNamespace(data=SimpleNamespace(test=None), operating_point=None),
        "estimator": SimpleNamespace(raw_threshold=0.75, class_models=[converged]),
        "evaluation": SimpleNamespace(classes=classes, test=tested or None),
    }  # fmt: skip
    return SimpleNamespace(**about | more)


def warned(run_of: SimpleNamespace) -> dict[str, str]:
    return {entry["key"]: entry["text"] for entry in run_warnings(run_of)}


def test_a_run_without_doubts_has_no_warning() -> None:
    assert run_warnings(fitted(0.8)) == []
    assert run_warnings(fitted(None)) == []


def test_the_rows_and_the_interval() -> None:
    assert list(warned(fitted(0.8, tested=False))) == ["no-test-rows"]
    assert warned(fitted(0.5))["auc-may-be-chance"].startswith("The interval of the AUC includes 0.5: ")
    assert warned(fitted(0.8, leaks=[("k", "t")])) == {"k": "t"}
    # what the run has left out stays out
    assert warned(fitted(0.8, leaks=[("k", 'drop=["a"]')])) == {"k": 'drop=["id", "a"]'}


def test_warnings_of_the_library_are_sentences() -> None:
    kinds = [("ConvergenceWarning", "the fit ended"), ("UserWarning", "check `monotone`")]
    assert warned(fitted(0.8, warned=kinds)) == {"not-converged": "The fit ended.", "fit": "Check `monotone`."}


def test_a_stationary_point_is_no_proof() -> None:
    model = SimpleNamespace(certificate_=SimpleNamespace(status="stationary"))
    ((key, text),) = warned(fitted(0.8, estimator=SimpleNamespace(raw_threshold=0.0, class_models=[model]))).items()
    assert key == "stationary-point"
    assert text.startswith("The objective is not convex: the weights are a stationary point")


def test_classes_are_named() -> None:
    assert warned(fitted(0.4, 0.4, 0.8))["auc-may-be-chance"].startswith(
        "The interval of the AUC for c0, c1 includes 0.5: "
    )
    lacking = fitted(None, 0.8)
    lacking.evaluation.classes[0] = lacking.evaluation.classes[0]._replace(test=None)
    assert warned(lacking) == {
        "classes-not-tested": "The means leave out c0, which have no positive or no negative test rows."
    }


@pytest.mark.parametrize(("time", "metric", "low"), [("year", "auc", 0.97), (None, "auc", 0.97), ("year", "auc", 0.5),
                                                     ("year", "group_auc", 0.97)])  # fmt: skip
def test_a_test_auc_far_below_that_of_the_search_is_a_warning(time: str | None, metric: str, low: float) -> None:
    search = {"metric": metric, "score": 0.98, "interval": [low, 0.99], "best": {}, "table": []}
    config = SimpleNamespace(data=SimpleNamespace(test=SimpleNamespace(time=time)), operating_point=None)
    texts = warned(fitted(0.8, search=search, config=config))
    assert ("test-below-search" in texts) == (metric == "auc" and low > 0.95)
    said = "The test rows are later than those of the folds: expect" if time else "Expect"
    for text in texts.values():
        assert text == (
            f"The AUC of the test rows (0.900) is far below the AUC of the search (0.980). {said} the value of the test rows."
        )


def test_of_several_classes_the_means_are_compared() -> None:
    search = {"metric": "auc", "score": 0.98, "interval": [0.97, 0.99], "best": {}, "table": []}
    assert warned(fitted(0.8, 0.8, search=search)) == {
        "test-below-search": "The mean AUC of the test rows (0.900) is far below the mean AUC of the search (0.980). Expect the "
        "value of the test rows."
    }
    assert warned(fitted(0.8, 0.8, search=search | {"interval": [0.94, 0.99]})) == {}


@pytest.mark.parametrize(
    ("n_tied", "point", "expected"), [(60, {"alerts": 0.05}, 1), (4, {"alerts": 0.05}, 0), (60, None, 0)]
)
def test_rows_of_one_score_that_are_flagged_together_are_a_reason_to_doubt_the_target(
    n_tied: int, point: dict[str, float] | None, expected: int
) -> None:
    values = np.concatenate([np.linspace(2, 3, 20), np.full(n_tied, 1.0), np.linspace(-1, 0, 980 - n_tied)])
    config = SimpleNamespace(data=SimpleNamespace(test=None), operating_point=point)
    messages = warned(fitted(0.8, values=values, config=config))
    assert len(messages) == expected
    for key, text in messages.items():
        assert key == "equal-scores-at-threshold"
        assert text.startswith(
            "60 test rows have the lowest score that is flagged, and rows with equal scores are flagged together."
        )


def search_of(means: dict[Any, float], best: Any, **more: Any) -> dict[str, Any]:
    folds = np.array([-0.01, 0.0, 0.01])
    table = [
        {"parameters": {"lam": lam, "features": f} | more, "folds": list(folds + mean - (f is None))}
        for lam, mean in means.items()
        for f in (None, "bins")
    ]
    return {"best": {"lam": best, "features": "bins"} | more, "metric": "auc", "table": table}


def test_a_choice_at_the_end_of_its_grid_is_a_warning() -> None:
    falling = {1.0: 0.7, 0.1: 0.8, 0.01: 0.9}
    ((key, text),) = choice_at_end(search_of(falling, 0.01))
    assert key == "choice-at-end-of-grid"
    assert text == (
        "The best lam, 0.01, is the smallest value tried, and the next one was clearly worse. Try smaller values with "
        "`grid.lam=[0.01, 0.001, 0.0001]`."
    )
    ((_, text),) = choice_at_end(search_of({0.01: 0.7, 0.1: 0.8, 1.0: 0.9}, 1.0))
    assert "The best lam, 1, is the largest value tried, " in text
    assert text.endswith("Try larger values with `grid.lam=[1, 10, 100]`.")
    for inside in (
        search_of({1.0: 0.7, 0.1: 0.9, 0.01: 0.8}, 0.1),
        search_of({0.1: 0.8, 0.01: 0.9}, 0.01),  # one of two is always at an end
        search_of({1.0: 0.9, 0.1: 0.9, 0.01: 0.9}, 0.01),  # the next one is as good
        search_of({None: 0.8, 0.1: 0.8, 0.01: 0.9}, 0.01),
        {},
    ):
        assert list(choice_at_end(inside)) == []


def test_a_setting_that_left_the_race_was_clearly_worse_before() -> None:
    search = search_of({1.0: 0.7, 0.1: 0.8, 0.01: 0.9}, 0.01)
    for row in search["table"]:
        if row["parameters"]["lam"] == 0.1:
            row["folds"] = [*row["folds"][:1], None, None]
    assert len(list(choice_at_end(search))) == 1


def test_the_guide_lists_every_key() -> None:
    root = Path(__file__).resolve().parents[3]
    guide = (
        (root / "docs/pages/how-to/report.md").read_text(encoding="utf-8").split("## Warnings\n")[1].split("\n## ")[0]
    )
    code = "".join((root / file).read_text() for file in FILES_WITH_KEYS)
    keys = re.findall(r'"([a-z]+(?:-[a-z]+)+)"', code)
    assert set(re.findall(r"^\| `([a-z-]+)` \|", guide, re.MULTILINE)) == {*keys, "fit"}


def test_notes_about_columns_are_apart_from_doubts() -> None:
    entries = {
        "column-in-question": "Does 0 mean missing?",
        "fit": "Check it with `data.test=x`.",
        **dict.fromkeys(sorted(COLUMN_NOTES), "A note."),
    }
    about = {"run": "r", "warnings": [{"key": key, "text": text} for key, text in entries.items()]}
    assert warning_texts(about) == ["Check it with `aucdist train r/config.yaml --set data.test=x`."]
    assert warning_texts(about, notes=True) == ["Does 0 mean missing?", *["A note."] * len(COLUMN_NOTES)]
    code = "".join((Path(__file__).resolve().parents[3] / file).read_text() for file in FILES_WITH_KEYS)
    assert all(f'"{key}"' in code for key in COLUMN_NOTES)


# ---- where the warnings are read -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two runs of a table with a copied column and few test rows."""
    folder = tmp_path_factory.mktemp("runs")
    random = np.random.default_rng(0)
    y = np.arange(200) % 5 == 0
    x = random.normal(size=200) + y
    lines = [f"{a:.6f},{2 * a:.6f},{int(label)}" for a, label in zip(x, y, strict=True)]
    (folder / "t.csv").write_text("\n".join(["a,twice,y", *lines]))
    for name in ("first", "second"):
        run(
            "train", str(folder / "t.csv"), "--label", "y", "--output", str(folder / name), "--set", "baselines=false", "--set",
            "model={estimator: PairwiseHingeClassifier, lam: 0.01}", "--set", "operating_point={alerts: 0.2}",
            "--set", f"name={name}",
        )  # fmt: skip
    return folder


def test_a_run_carries_its_warnings(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,), (second,) = (runs / "first").iterdir(), (runs / "second").iterdir()
    entries = json.loads((first / "metrics.json").read_text())["warnings"]
    texts = {entry["key"]: entry["text"] for entry in entries}
    assert list(texts) == ["interval-from-few-rows", "collinear-columns"]
    assert texts["collinear-columns"].endswith('leave one of each pair out with `data.source.drop=["twice"]`.')
    page = (first / "report.html").read_text()
    assert page.count("<li>The interval of the AUC may be too narrow: the smaller class has 8 rows") == 1
    assert "<li>Columns &#39;a&#39; and &#39;twice&#39; have features" in page
    assert load_model(str(first)).about["warnings"] == entries

    monkeypatch.chdir(runs)
    printed, _ = run("compare", first, second)
    for text in texts.values():
        assert printed.count(f"warning: both runs: {text.partition('`')[0]}") == 1
    assert f"aucdist train {first}/config.yaml" in printed
    assert f"aucdist train {second}/config.yaml" not in printed
    setting = "--set 'data.source.drop=[\"twice\"]'"
    compared = result_of("compare", first, second)["runs"][0]["warnings"]
    assert compared[0] == texts["interval-from-few-rows"]
    assert compared[1].endswith(f"leave one of each pair out with `aucdist train {first}/config.yaml {setting}`.")

    assert result_of("promote", first, "store")["warnings"] == entries
    printed, _ = run("promote", second, "store")
    assert "version 2 is in use" in printed
    assert f"aucdist train {second}/config.yaml {setting}`." in printed

    changed = result_of("threshold", first, "--alerts", "0.5")["run"]
    assert json.loads((Path(changed) / "metrics.json").read_text())["warnings"] == entries
    assert texts["interval-from-few-rows"] in (Path(changed) / "report.html").read_text()


def test_runs_of_older_versions_have_no_warnings(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        folder = min((runs / name).iterdir())
        shutil.copytree(folder, name)
        about = json.loads((folder / "metrics.json").read_text())
        del about["warnings"]
        Path(name, "metrics.json").write_text(json.dumps(about))
    assert "collinear" not in str(result_of("compare", "first", "second")["runs"])
    assert result_of("promote", "first", "store")["warnings"] == []
    assert "warnings" not in json.loads(
        (Path(result_of("threshold", "first", "--alerts", "0.5")["run"]) / "metrics.json").read_text()
    )


def test_the_columns_that_train_leaves_out_and_its_questions_are_warnings(tmp_path: Path) -> None:
    """For a file of data, what the YAML says of its columns is printed, and is in the report and in `--json`."""
    r = np.random.default_rng(0)
    lines = ["customer,txn,grade,x,y"]
    lines += [f"{r.integers(1, 200)},T{i}7,{r.integers(1, 4)},{r.normal():.4f},{int(i % 4 == 0)}" for i in range(600)]
    (tmp_path / "rows.csv").write_text("\n".join([*lines, ""]))
    output = ("--set", "model={tol: 0.5}", "--output", tmp_path)
    result = result_of("train", tmp_path / "rows.csv", "--label", "y", *output)
    texts = {entry["key"]: entry["text"] for entry in result["warnings"]}
    assert (
        texts["columns-left-out"]
        == "1 column left out: txn (600 different strings in 600 rows: an identifier or names)."
    )
    assert texts["numbers-may-be-codes"].startswith("Read as numbers: grade. If the numbers of a column are codes")
    assert texts["column-in-question"].startswith("Column 'customer' has 1")
    page = (Path(result["run"]) / "report.html").read_text().replace("&#39;", "'")
    doubts, _, data = page.partition("<h2>Data</h2>")
    assert "<h3>Columns</h3>" in data
    assert all(texts[key].split("`")[0] in data for key in ("columns-left-out", "numbers-may-be-codes"))
    # rows of one customer on both sides of the split would make the test too good
    assert texts["column-in-question"].split("`")[0] in doubts
    assert "left out: txn" not in doubts
