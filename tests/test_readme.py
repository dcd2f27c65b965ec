"""The README is short, and its example prints what it says."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aucdist
from flows.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+\.\d+")


def test_python_example_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert NUMBER.sub("", printed).split() == NUMBER.sub("", shown).split()
    # The last places of a fit depend on the processor.
    numbers = [np.array([float(number) for number in NUMBER.findall(text)]) for text in (printed, shown)]
    np.testing.assert_allclose(*numbers, rtol=2e-3, atol=2e-3)


def test_it_is_short() -> None:
    assert len(README.split()) <= 700
    assert max(map(len, README.splitlines())) <= 120


def test_help_tells_the_same_story() -> None:
    for text in (README, aucdist.__doc__ or "", app.help or ""):
        said = " ".join(text.split())
        assert "linear and additive models that rank a rare class above the rest" in said
        assert "over all pairs" in said
        assert "close to the optimum" in said


SAID = " ".join(README.split())
KEPT = Path(__file__).parents[1] / "docs" / "benchmarks"


def test_the_largest_run_is_the_kept_one() -> None:
    (run,) = pd.read_csv(KEPT / "large-runs.csv").nlargest(1, "rows").to_dict("records")
    assert f"{run['rows'] / 1e6:.0f} million rows of {run['features']} features" in SAID
    assert f"[{run['whole run s'] / 60:.1f} minutes and {run['all MiB'] / 1024:.0f} GiB]" in SAID


def test_models_one_can_read_stand_where_the_kept_table_says() -> None:
    trees = pd.read_csv(KEPT / "trees.csv")
    means = {row["system"]: row for row in trees[trees["split"] == "all"].to_dict("records")}
    ours, boosted, ebm = (means[name] for name in ("bins + pairs", "LightGBM, budget of auto", "EBM"))
    where = trees[(trees["split"] == "mean") & trees["set"].isin(trees.loc[trees["system"] == "EBM", "set"])]
    there = where.loc[where["system"] == "bins + pairs", "AUC"].mean()
    assert f"a mean AUC of {_auc(ours['AUC'])} in {_tenths(ours['seconds'])} s" in SAID
    assert f"LightGBM of twenty settings {_auc(boosted['AUC'])} in {_tenths(boosted['seconds'])} s" in SAID
    assert f"it has {_auc(ebm['AUC'])} in {ebm['seconds']:.0f} s, they {_auc(there)}." in SAID
    assert (ours["set"], boosted["set"], ebm["set"]) == ("100 sets", "100 sets", "82 sets")


def test_the_top_of_the_list_stands_where_the_kept_table_says() -> None:
    table = pd.read_csv(KEPT / "curves.csv")
    (sums,) = table[table["data"].str.startswith("all ") & table["system"].str.startswith("LightGBM")].to_dict(
        "records"
    )
    seconds = table.pivot_table(index="data", columns="system", values="CPU seconds", aggfunc="sum")
    shares = seconds["aucdist auto"] / seconds["LightGBM, budget of auto"]
    low, high = (f"{share:.2f}".lstrip("0") for share in (shares.min(), shares.max()))
    n_sets = int(sums["data"].removeprefix("all "))
    assert (
        f"settings on {sums['ties']:.0f} of {n_sets} sets, ahead on one, in {low} to {high} times its CPU time" in SAID
    )
    assert (sums["wins"], sums["loses"]) == (1, 0)


def _auc(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def _tenths(value: float) -> str:
    return f"{value:.1f}".removeprefix("0")
