"""The README is short, and its example prints what it says."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.tree_systems import TUNED
from sklearn.linear_model import LogisticRegression

import aucdist
from aucdist.metrics import average_precision_difference
from flows.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+\.\d+")


def test_python_example_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lightgbm")
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert NUMBER.sub("", printed).split() == NUMBER.sub("", shown).split()
    # The last places of a fit depend on the processor.
    numbers = [np.array([float(number) for number in NUMBER.findall(text)]) for text in (printed, shown)]
    np.testing.assert_allclose(*numbers, rtol=2e-3, atol=2e-3)
    logistic = LogisticRegression().fit(names["X_train"], names["y_train"]).decision_function(names["X_test"])
    gain = average_precision_difference(names["y_test"], names["scores"], logistic)
    (said,) = re.findall(r"better than logistic regression by (\S+) \(95 % interval (\S+) to (\S+)\)", SAID)
    np.testing.assert_allclose([gain.value, gain.low, gain.high], [float(number) for number in said], atol=2e-3)


def test_its_example_with_other_random_states_has_the_kept_figures() -> None:
    table = STATES.pivot_table("average precision", "system", "random state")
    for system, values in table.drop(index="LightGBM, standardised features").iterrows():
        assert f"| {system} | " + " | ".join(f"{value:.3f}" for value in values) + " |" in BENCHMARK_LINES
    auto, tuned = table.loc["aucdist, auto"], table.loc["LightGBM, 20 settings"]
    assert [state for state in table if tuned[state] > auto[state]] == [0, 1, 2, 3]
    assert (table.drop(index=["aucdist, auto", "LightGBM, 20 settings"]).max() < auto).all()
    defaults, standardised = table.loc["LightGBM", 0], table.loc["LightGBM, standardised features", 0]
    assert f"moved LightGBM's defaults from {defaults:.3f} to {standardised:.3f} for state 0" in BENCHMARKS
    seconds = STATES.set_index("system").loc[["aucdist, auto", "LightGBM, 20 settings"], "CPU seconds"]
    assert f"Both take {seconds.min():.0f} to {seconds.max():.0f} CPU seconds" in BENCHMARKS
    assert f"its average precision is {tuned[1]:.3f} with the best of 20 settings" in SAID
    assert f"The model above has {table.loc['aucdist, bins with ten interactions', 1]:.3f}" in SAID
    ten = table.loc["aucdist, bins with ten interactions"]
    leads = [(ten - table.loc["logistic regression"]).drop(1), (tuned - ten).drop(1)]
    said = (
        "average precision was {:.3f} to {:.3f} above that of logistic regression, and {:.3f} to {:.3f} below that of LightGBM "
        "with the best of 20 settings"
    )
    assert said.format(*(end for lead in leads for end in (lead.min(), lead.max()))) in SAID
    assert (ten > table.loc["logistic regression"]).all()
    assert [state for state in table if ten[state] < table.loc["LightGBM", state]] == [1, 2, 3]
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    for estimator, system in (
        ("LogisticRegression", "logistic regression"),
        ("PairwiseHingeClassifier", "aucdist, bins with ten interactions"),
    ):
        assert f"{estimator:23} average precision {table.loc[system, 1]:.3f}" in shown


def test_the_first_example_of_the_documentation_has_trees_beside_it() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    text = (DOCS / "pages" / "index.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:1]
    names: dict[str, Any] = {}
    exec(compile(example, "index.md", "exec"), names)
    X, y, train, new = (names[name] for name in ("X", "y", "train", "new"))
    scores = (
        lightgbm.LGBMClassifier(n_jobs=1, random_state=0, verbosity=-1)
        .fit(X[train], y[train])
        .predict_proba(X[new])[:, 1]
    )
    (said,) = re.findall(r"LightGBM with its defaults finds (\d+) of the positive rows", text)
    assert y[new][scores.argsort()[-100:]].sum() == pytest.approx(int(said), abs=1)  # trees may differ by processor


def test_its_lines_are_short_and_its_first_screen_has_the_essentials() -> None:
    assert max(len(line) for line in README.splitlines() if not line.startswith("|")) <= 130
    lead = ["trains linear", "you have a tuned LightGBM", "pip install"]
    parts = [
        *lead,
        "```python",
        "```text",
        "LightGBM [ranks these rows better]",
        "![",
        "consists of two numbers",
        "Who ranks best here?",
    ]
    places = [README.index(part) for part in parts]
    assert places == sorted(places)
    assert places[parts.index("![")] < 3300
    assert places[-1] < 4300


def test_help_tells_the_same_story() -> None:
    for text in (README, aucdist.__doc__ or "", app.help or ""):
        said = " ".join(text.split())
        assert "linear and additive models that rank a rare class above the rest" in said
        assert "over all pairs" in said
        assert "close to the optimum" in said


SAID, LINES = " ".join(README.split()), README.splitlines()
DOCS = Path(__file__).parents[1] / "docs"
KEPT = DOCS / "benchmarks"
BENCHMARK_LINES = (DOCS / "pages" / "benchmarks.md").read_text(encoding="utf-8").splitlines()
BENCHMARKS = " ".join(" ".join(BENCHMARK_LINES).split())
TREES = pd.read_csv(KEPT / "trees.csv")
STATES = pd.read_csv(KEPT / "readme.csv")
RARE_SYSTEMS = ("logistic", "readable", "auto", "LightGBM", "LightGBM tuned", "EBM")


def test_the_largest_run_is_the_kept_one() -> None:
    (run,) = pd.read_csv(KEPT / "large-runs.csv").nlargest(1, "rows").to_dict("records")
    assert f"{run['rows'] / 1e6:.0f} million simulated rows of {run['features']} features" in SAID
    assert f"[{run['whole run s'] / 60:.1f} minutes and {run['all MiB'] / 1024:.1f} GiB]" in SAID


def test_the_rare_classes_have_the_kept_figures() -> None:
    splits = pd.read_csv(KEPT / "rare.csv")
    assert set(splits.groupby("table").size()) == {3}
    means = splits.groupby("table", sort=False).mean(numeric_only=True)
    lines = [
        f"| {name} | {row['rows']:,.0f} | {100 * row['positives'] / row['rows']:.1f} % | "
        + " | ".join(f"{row[f'AP {system}']:.3f}" for system in RARE_SYSTEMS)
        for name, row in means.iterrows()
    ]
    over_sets = means.mean()
    for title, figure, digits in (("average precision", "AP", 3), ("AUC", "AUC", 3), ("CPU seconds", "CPU s", 2)):
        cells = (f"{over_sets[f'{figure} {system}']:.{digits}f}" for system in RARE_SYSTEMS)
        lines.append(f"| **mean {title}** |  |  | " + " | ".join(cells))
    assert [f"{line} |" for line in lines] == LINES[LINES.index("|---|---:|---:|---:|---:|---:|---:|---:|---:|") + 1 :][
        : len(lines)
    ]


def test_the_hundred_sets_have_the_kept_figures() -> None:
    sets = TREES[TREES["split"] == "mean"].drop_duplicates("set")
    n, n_pos = sets["rows"].median(), sets["positives"].median()
    for text in (SAID, BENCHMARKS):
        assert f"The median set has {n:.0f} training rows and {n_pos:.0f} positives." in text
    means = {row["system"]: row for row in TREES[TREES["split"] == "all"].to_dict("records")}
    said = {
        "auto": "`auto` has a mean AUC of {:.3f}",
        "bins + pairs": "bins with ten interactions have {:.3f}",
        "LightGBM, default": "LightGBM has {:.3f} with its defaults",
        "LightGBM, budget of auto": "{:.3f} with the best of twenty settings",
    }
    for system, text in said.items():
        assert text.format(means[system]["AUC"]) in SAID
    assert {means[system]["set"] for system in said} == {"100 sets"}
    for *values, last in TUNED.values():
        drawn = f"{', '.join(map(str, values))} or {last}"
        assert drawn in BENCHMARKS
    above, below = _sets_apart("auto", "LightGBM, budget of auto")
    assert f"| LightGBM, 20 settings | {above} | {below} |" in BENCHMARK_LINES


def _sets_apart(first: str, second: str) -> tuple[int, int]:
    """Return on how many of the hundred sets the mean AUC of a system is more than 0.005 above that of another, and below."""
    areas = TREES[TREES["split"] == "mean"].pivot_table("AUC", "set", "system")
    lead = areas[first] - areas[second]
    return int((lead > 0.005).sum()), int((lead < -0.005).sum())


@pytest.mark.parametrize("page", ["docs/pages/which-estimator.md"])
def test_where_pairs_are_praised_the_logistic_loss_is_said_to_be_ahead(page: str) -> None:
    text = " ".join((Path(__file__).parents[1] / page).read_text(encoding="utf-8").split())
    means = TREES[TREES["split"] == "all"].set_index("system")
    pairs, logistic = (
        [f"{means.loc[name, column]:.3f}" for column in ("AUC", "PR-AUC")] for name in ("bins", "bins, logit")
    )
    assert logistic > pairs
    assert all(figure in text for figure in (*pairs, *logistic))
    if "which-estimator" in page:
        above, below = _sets_apart("bins", "bins, logit")
        assert (
            f"more than 0.005 above that of the logistic loss on {above} sets, and more than 0.005 below it on {below}"
            in text
        )


def test_the_top_of_the_list_stands_where_the_kept_tables_say() -> None:
    table = pd.read_csv(KEPT / "curves.csv")
    (sums,) = table[table["data"].str.startswith("all ") & table["system"].str.startswith("LightGBM")].to_dict(
        "records"
    )
    n_sets = int(sums["data"].removeprefix("all "))
    assert (sums["wins"], sums["loses"]) == (1, 0)
    assert f"does not differ significantly from tuned LightGBM on {sums['ties']:.0f} of {n_sets} sets" in SAID
    ours = table[table["system"] == "aucdist auto"]
    leaves = ours["chosen"].str.contains("forest_score").groupby(ours["data"]).mean() > 0.5
    told = f"On {leaves.sum()} of the {len(leaves)} sets, it had chosen LightGBM's own trees and score."
    assert told in SAID
    top = pd.read_csv(KEPT / "top.csv")
    (lines,) = top[(top["data"] == "all 20") & (top["system"] == "lightgbm")].to_dict("records")
    assert f"than LightGBM on {lines['loses']:.0f} of 20 sets" in SAID


def test_what_is_said_of_auto_has_the_kept_figures() -> None:
    splits = pd.read_csv(KEPT / "auto.csv").dropna(subset="AUC auto")
    kept = splits.groupby("table").mean(numeric_only=True)
    assert (len(kept), len(splits)) == (23, 5 * 23)
    means = kept.mean(numeric_only=True)
    assert f"mean AUC of {means['AUC auto']:.3f}, and LightGBM has {means['AUC LightGBM']:.3f}" in SAID
    lead = (kept["AUC auto"] - kept["AUC LightGBM"]).nlargest(3)
    assert sorted(lead.index) == ["vehicle1", "vehicle3", "yeast1"]
    share = lead.sum() / (kept["AUC auto"] - kept["AUC LightGBM"]).sum()
    behind = {
        measure: kept[[f"{measure} LightGBM", f"{measure} HGB"]].max(axis=1) - kept[f"{measure} auto"]
        for measure in ("AUC", "AP")
    }
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    behind_on = [
        f"on {words[(column > 1e-9).sum()]} data sets, by at most {column.max():.4f}" for column in behind.values()
    ]
    told = f"lower AUC than the better of the two {behind_on[0]}, and a lower average precision {behind_on[1]}"
    assert told in BENCHMARKS
    ratio = kept["CPU s auto"] / kept["CPU s LightGBM"]
    large = splits.query("rows >= 5000")
    chosen, n_sets = large["chosen"].str.contains("forest_score").sum(), words[large["table"].nunique()].capitalize()
    told = f"{n_sets} sets have real data and at least 5,000 training rows. In {chosen} of the {len(large)} splits"
    assert told in BENCHMARKS
    assert (large["positives"] / large["rows"]).min() > 0.03
    for text in (SAID, BENCHMARKS):
        assert f"account for {100 * share:.0f} % of the lead" in text
        assert f"{ratio.min():.0f} to {ratio.max():.0f} times as long as a fit of LightGBM" in text


POSITIVES = (DOCS / "pages" / "how-to" / "feature-maps.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("label", "low", "high"),
    [
        ("fewer than 13", 0, 12), ("13 to 40", 12, 40), ("41 to 100", 40, 100), ("101 to 500", 100, 500),
        ("more than 500", 500, np.inf),
    ],
)  # fmt: skip
def test_the_advice_by_number_of_positives_has_the_kept_figures(label: str, low: float, high: float) -> None:
    sets = TREES[(TREES["split"] == "mean") & (TREES["positives"] > low) & (TREES["positives"] <= high)]
    means = sets.groupby("system")["AUC"].mean()
    systems = ("linear", "bins", "bins + pairs", "auto", "LightGBM, default", "LightGBM, budget of auto")
    cells = " | ".join(f"{means[system]:.3f}" for system in systems)
    assert f"| {label} | {sets['set'].nunique()} | {cells} |" in POSITIVES.splitlines()
