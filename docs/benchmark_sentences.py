"""Sentences of the pages that quote figures: each is written here with a place for each figure, computed from its file.

    python docs/benchmark_sentences.py    # those that a page does not have, as after a new measurement

Tables are written into the pages by `benchmark_tables.py`, and sentences are not, so that somebody reads them again.
"""

import json
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "benchmarks"
BOOSTED = "LightGBM, budget of auto"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
Sentences = list[tuple[str, str]]
"""A page, and what it says."""


def kept(name: str) -> pd.DataFrame:
    """Return a table of measurements."""
    return pd.read_csv(KEPT / f"{name}.csv", low_memory=False)


def said_by(page: str) -> str:
    """Return the text of a page on one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def version(name: str) -> str:
    """Return the version that a table was measured with."""
    return str(json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))["aucdist"])


def of_auto() -> Sentences:
    """Return the sentences about `features: auto` beside boosted trees with their defaults."""
    splits = kept("auto").dropna(subset="AUC auto")
    means = splits.groupby("table").mean(numeric_only=True)
    behind = [
        (means[[f"{measure} LightGBM", f"{measure} HGB"]].max(axis=1) - means[f"{measure} auto"]).max()
        for measure in ("AUC", "AP")
    ]
    ours, theirs = means["CPU s auto"].mean(), means["CPU s LightGBM"].mean()
    ratios = means["CPU s auto"] / means["CPU s LightGBM"]
    unreadable = splits["chosen"].str.contains('"leaves"|"nystroem"').sum()
    return [
        ("docs/pages/benchmarks.md", f"In {unreadable} of the {len(splits)} splits, `auto` chose"),
        (
            "docs/pages/benchmarks.md",
            f"its AUC is lower by at most {behind[0]:.4f} and its average precision by at most {behind[1]:.4f}. It takes "
            f"{ours:.1f} CPU seconds on average instead of {theirs:.2f}, about {ours / theirs:.0f} times as "
            "long.",
        ),
        (
            "docs/pages/coming-from.md",
            f"a mean average precision of {means['AP auto'].mean():.3f}, and LightGBM with its defaults has "
            f"{means['AP LightGBM'].mean():.3f}, but `auto` takes {ratios.min():.0f} to {ratios.max():.0f} times as long.",
        ),
    ]


def of_trees() -> Sentences:
    """Return the sentences about the suite `trees`."""
    table = kept("trees")
    means = table[table["split"] == "all"].set_index("system")["AUC"]
    sets = table[table["split"] == "mean"].pivot_table("AUC", "set", "system")
    seconds = table[table["split"] == "mean"].pivot_table("seconds", "set", "system")
    finished = sets["EBM"].notna()
    n_finished, among, took = finished.sum(), sets[finished].mean(), seconds[finished].mean()
    with_svc = sets[sets["SVC, RBF"].notna()]
    beside_svc = with_svc.mean()
    magic = sets.loc["magic04"]
    above = sets["auto"] - sets["LightGBM, default"]
    linear = sets["linear"] - sets["auto"]
    largest = table.groupby("set")["rows"].max().nlargest(5).index
    trees = [name for name in sets if name.startswith(("LightGBM", "XGBoost", "HistGradient"))]
    lead = (sets["auto"] - sets[trees].max(axis=1))[largest]
    assert lead.drop(["covtype-ramp-test", "magic04"]).abs().max() < 0.001
    page = "docs/pages/benchmarks.md"
    return [
        (
            page,
            f"a mean AUC of {means['auto']:.3f}, bins with ten interactions (`bins + interactions`) have "
            f"{means['bins + pairs']:.3f}, LightGBM with the best of twenty settings has {means[BOOSTED]:.3f}, and LightGBM with "
            f"its defaults has {means['LightGBM, default']:.3f}.",
        ),
        (
            page,
            f"An EBM has {means['EBM']:.3f} on the {n_finished} sets where it has a result. On these {n_finished} sets, bins "
            f"with interactions have {among['bins + pairs']:.3f}, and `auto` has {among['auto']:.3f}.",
        ),
        (
            page,
            f"On the {len(with_svc)} sets where SVC has a result, its mean AUC is {beside_svc['SVC, RBF']:.3f}, that of bins "
            f"with interactions is {beside_svc['bins + pairs']:.3f}, and that of `auto` is {beside_svc['auto']:.3f}. On the "
            f"{n_finished} sets of the EBM, the three are {among['EBM']:.3f}, {among['bins + pairs']:.3f} "
            f"and {among['auto']:.3f}.",
        ),
        (
            page,
            f"the AUC of `auto` is {-lead['covtype-ramp-test']:.3f} below that of the best boosted trees on covtype and "
            f"{-lead['magic04']:.3f} below it on magic04. On the others it differs by less than 0.001.",
        ),
        (
            page,
            f"On magic04, the AUC is {magic['linear']:.3f} for the linear model, {magic['bins']:.3f} for bins, "
            f"{magic['bins + pairs']:.3f} for bins with ten interactions, and {magic['LightGBM, default']:.3f} for LightGBM "
            "with its defaults.",
        ),
        (
            "docs/pages/how-to/feature-maps.md",
            f"its mean AUC on our 100 sets is {means['bins + pairs']:.3f}, against {means['bins']:.3f} without",
        ),
        (page, f"| LightGBM, default | {(above > 0.005).sum()} | {(above < -0.005).sum()} |"),
        (page, f"| our linear model | {(linear < -0.005).sum()} | {(linear > 0.005).sum()} |"),
        (page, f"On one of them, the AUC of `auto` is {linear.max():.3f} lower."),
        (page, f"0.05 and its other defaults has a mean AUC of {means['LightGBM, 500 trees']:.3f} (a row of"),
        (
            "docs/pages/coming-from.md",
            f"on {n_finished} small data sets. On these {n_finished} sets, it had a mean AUC of {means['EBM']:.3f} in "
            f"{took['EBM']:.0f} seconds, and bins with interactions had {among['bins + pairs']:.3f} in "
            f"{took['bins + pairs']:.1f} seconds",
        ),
    ]


def of_thresholds() -> Sentences:
    """Return the sentence about the suite `thresholds`."""
    table = kept("thresholds")
    means = table[["training rows", "out of fold"]].mean()
    worst = table.groupby("map")["training rows"].mean()["bins and ten interactions"]
    return [
        (
            "docs/pages/benchmarks.md",
            f"a threshold at a false positive rate of 5 %, over {table['table'].nunique()} tables and three feature maps. If "
            f"out-of-fold scores set this threshold, it flags {100 * means['out of fold']:.1f} % of the negative test rows on "
            f"average. If the scores of the training rows set it, it flags {100 * means['training rows']:.1f} %, and "
            f"{100 * worst:.1f} % with ten interactions (version {version('thresholds')}).",
        ),
    ]


def of_lam() -> Sentences:
    """Return the sentences about the suite `lam`."""
    table = kept("lam")
    values = [column for column in table if column.startswith("AP ")]
    bins, linear = (rows.groupby("table").mean(numeric_only=True) for _, rows in table.groupby("map"))
    means, best = bins[values].mean(), bins[values].idxmax(axis=1)
    lost, lost_without = (tables[values].max(axis=1) - tables["AP 0.001"] for tables in (bins, linear))
    few, many = bins["positives"] < 400, bins["positives"] > 1000
    return [
        (
            "docs/pages/benchmarks.md",
            f"over {len(bins)} tables is {means['AP 0.01']:.3f} with `lam` 1e-2, {means['AP 0.001']:.3f} with 1e-3 and "
            f"{means['AP 0.0001']:.3f} with 1e-4. Choosing the best of {WORDS[len(values)]} values for each table would add "
            f"{lost.mean():.3f} on average. It would add {lost['covtype, class 4']:.3f} on class 4 of covtype, where "
            f"{best['covtype, class 4'].removeprefix('AP ').replace('1e-05', '1e-5')} is best. "
            f"Most tables with fewer than 400 positives ({best[few].isin(['AP 0.01', 'AP 0.1']).sum()} of {few.sum()}) are best "
            f"at 1e-2 or 1e-1. Most of those with more than 1,000 positives ({(best[many] == 'AP 1e-05').sum()} of {many.sum()}) "
            f"are best at 1e-5. Without a feature map, the choice adds {lost_without.mean():.3f} on average.",
        ),
    ]


def of_pairs() -> Sentences:
    """Return the sentences about pairs of columns."""
    table = kept("pairwise").set_index("data")
    fits = table[table["system"] == "all-pairs"].set_index("lam", append=True)["seconds"]
    over = fits / table[table["system"] == "LogisticRegression(lbfgs)"]["seconds"]
    shown = over.dropna().loc[:, [1e-3, 1e-4]]
    since = kept("since-0.4.0")
    fewer = since["now"] / since["0.4.0"]
    passes = since["figure"].str.startswith("passes of")
    tall = fewer[passes & (since["table"] == "pairwise") & ~since["figure"].str.contains("news20")]
    needs = f"needs {100 * tall.min():.0f} to {100 * tall.max():.0f} % of the passes of 0.4.0"
    top = fewer[passes & (since["table"] == "passes")].groupby(since["figure"].str.split("[ ,]").str[2])
    low, high = top.min(), top.max()
    better = ["kddcup99", "news20", "covtype-93k"]
    return [
        (
            "docs/pages/benchmarks.md",
            f"takes [{shown.min():.2g} to {shown.max():.2g} times](#time-to-a-certificate) as long as logistic regression, on "
            f"{WORDS[shown.index.get_level_values(0).nunique()]} data sets",
        ),
        (
            "docs/pages/benchmarks.md",
            f"`all-pairs` takes {over['kddcup99', 1e-3]:.2g} times as long as logistic regression.",
        ),
        ("docs/pages/benchmarks.md", needs),
        ("CHANGELOG.md", needs),
        (
            "CHANGELOG.md",
            f"On kddcup99, news20 and covtype they need {100 * low[better].min():.0f} to {100 * high[better].max():.0f} % of "
            f"the passes of 0.4.0, on a9a {100 * low['a9a']:.0f} to {100 * high['a9a']:.0f} %, and on skin {low['skin']:.1f} to "
            f"{high['skin']:.1f} times as many",
        ),
    ]


def of_passes() -> Sentences:
    """Return the sentences about the suite `passes`."""
    table = kept("passes")
    whole, top = table[table["value"] == 1], table[table["value"] < 1]
    collapsed = top["primal"] > 0.999
    assert (top["primal"][collapsed] < 1.001).all()
    on = {share: WORDS[n] for share, n in collapsed.groupby(top["value"]).sum().items()}
    assert on[0.05] == on[0.01]
    since = kept("since-0.4.0").query("table == 'passes' and change == 'worse'")["figure"]
    worse = since.str.extract(r"of (?P<data>\S+), share (?P<value>\S+)").astype({"value": float})
    assert (worse.merge(table, on=["data", "value"])["primal"] > 0.999).all()
    return [
        (
            "docs/pages/benchmarks.md",
            f"in {whole['passes'].min()} to {whole['passes'].max()} passes over all pairs, and in {top['passes'].min()} to "
            f"{top['passes'].max()} passes with `max_fpr` of 0.01 to 0.1 (version {version('passes')},",
        ),
        ("docs/pages/benchmarks.md", f"The {WORDS[len(worse)]} fits of the suite `passes` in this table"),
        (
            "docs/pages/benchmarks.md",
            f"In {collapsed.sum()} of these {len(top)} fits with `max_fpr`, the objective ended above 0.999",
        ),
        (
            "docs/pages/benchmarks.md",
            f"One of them, skin with `max_fpr` 0.1, ended at {top.set_index(['data', 'value'])['primal']['skin', 0.1]:.4f}.",
        ),
        (
            "docs/pages/how-to/top-of-the-list.md",
            f"on {on[0.1]} of five data sets with `max_fpr` 0.1, and on {on[0.05]} of them with 0.05 and with 0.01",
        ),
    ]


def of_workers() -> Sentences:
    """Return the sentences about workers."""
    table = kept("workers")
    seconds = {
        (kind, row[kind]): f"{row['fit s']:.1f} s" for kind in ("threads", "workers") for _, row in table.iterrows()
    }
    one, two, workers = seconds["threads", 1], seconds["threads", 2], seconds["workers", 2]
    assert table["rows"].max() == 4e6
    return [
        ("docs/pages/benchmarks.md", f"a fit took {two} with two threads and {workers} with two workers"),
        (
            "docs/pages/how-to/large-data.md",
            f"four million rows in memory took {one} with one thread, {two} with two threads and {workers} with two workers "
            f"(`docs/benchmarks/workers.csv`, version {version('workers')}).",
        ),
    ]


def of_many_rows() -> Sentences:
    """Return the sentences about fits to many rows."""
    (run,) = kept("large-runs").nlargest(1, "rows").to_dict("records")
    took = f"{run['whole run s'] / 60:.1f} minutes and {run['all MiB'] / 1024:.1f} GiB"
    return [
        ("README.md", f"(version {version('large-runs')}"),
        ("docs/pages/benchmarks.md", f"of {run['features']} features takes {took} on two cores."),
        (
            "docs/pages/how-to/large-data.md",
            f"A run with {run['rows'] / 1e6:.0f} million rows and {run['features']} features took {took}, from shards to report "
            f"([benchmarks](../benchmarks.md#many-rows), version {version('large-runs')}).",
        ),
    ]


def of_peers() -> Sentences:
    """Return the sentences about the suite `peers`."""
    table = kept("peers")
    (summary,) = table[(table["kind"] == "summary") & table["data sets"].notna()].to_dict("records")
    area = table[table["kind"] == "ours"].pivot_table("mean AUC", "data", "system")
    lead = area["aucdist pairwise ramp"] - area["aucdist pairwise hinge"]
    sets = table[(table["kind"] == "summary") & table["data sets"].isna()]
    first = sets["before or equal"].astype(str) == "True"
    later = ~first & sets["our fastest"].notna()
    n_skglm = (sets["fastest that reads all rows"][later] == "skglm").sum()
    cut = int(summary["excluded, cut off by the limit"])
    compared = cut + int(sum(summary[name] for name in ("wins", "ties", "loses")))
    page = "docs/pages/benchmarks.md"
    return [
        (page, f"| one of our estimators | {summary['before or equal']} |"),
        (page, f"| another system, and one of ours later | {later.sum()} (skglm on {n_skglm} of them) |"),
        (page, f"| another system, and none of ours | {(~first & ~later).sum()} |"),
        (page, f"The limit of four seconds excluded {cut} of {compared} comparisons with linear systems."),
        (
            "docs/pages/which-estimator.md",
            f"more than 0.002 above that of the hinge on {(lead > 0.002).sum()} of {len(lead)} data sets, and more than 0.002 "
            f"below it on {(lead < -0.002).sum()} (`docs/benchmarks/peers.csv`, version {version('peers')}).",
        ),
    ]


def of_rare_classes() -> Sentences:
    """Return the sentences about the suite `rare`."""
    splits = kept("rare")
    means = splits.groupby("table").mean(numeric_only=True)
    lead = means["AP auto"] - means["AP LightGBM"]
    behind_ebm = (means["AP EBM"] - means["AP auto"]).drop("aloi").mean()
    n_leaves, n = splits["chosen auto"].str.contains('"leaves"').sum(), len(splits)
    at_the_end = splits["chosen readable"].str.contains('"lam": 0.0001}').sum()
    sets = WORDS[len(means)]
    n_below = WORDS[(means["AP readable"] < means["AP EBM"]).sum()]
    assert (means["AP readable"] > means["AP logistic"]).all()
    ours, theirs = means["CPU s readable"].mean(), means["CPU s EBM"].mean()
    systems = ("LightGBM tuned", "auto", "EBM", "LightGBM", "readable", "logistic")
    precision = means[[f"AP {system}" for system in systems]].mean()
    assert precision.is_monotonic_decreasing
    tuned, auto, ebm, lightgbm, readable, logistic = (f"{value:.3f}" for value in precision)
    shares = 100 * means["positives"] / means["rows"]
    assert (shares < 1).sum() == 1  # "One of the classes is below 1 %."
    behind = [name.split(",")[0] for name, row in means.iterrows() if row["AUC auto"] < row["AUC readable"] - 1e-9][
        ::-1
    ]
    bench, gain = "docs/pages/benchmarks.md", precision["AP EBM"] - precision["AP readable"]
    return [
        (
            bench,
            f"the mean average precision is {tuned} for LightGBM with the best of twenty settings, {auto} for `auto`, {ebm} for "
            f"an EBM, {lightgbm} for LightGBM with its defaults, {readable} for the models of `auto` that can be read, and "
            f"{logistic} for logistic regression.",
        ),
        *(
            (page, f"On {' and '.join(behind)}, `auto` has a lower AUC than the readable models")
            for page in ("README.md", bench)
        ),
        (bench, f"whose rare class has {shares.min():.1f} to {shares.max():.1f} % of the rows"),
        (
            "README.md",
            f"the mean average precision is {logistic} for logistic regression, {readable} for our readable models, {ebm} for an "
            f"explainable boosting machine (EBM), and {tuned} for a tuned LightGBM.",
        ),
        ("docs/pages/when-not.md", f"better than our readable models on {n_below} of [{sets} rare classes]"),
        ("docs/pages/rare-class.md", f"better than our readable models on {n_below} of [{sets} rare classes]"),
        ("docs/pages/which-estimator.md", f"ranks better on {n_below} of [{sets} rare classes]"),
        ("docs/pages/index.md", f"better than these models on {n_below} of the {sets} sets"),
        ("docs/pages/coming-from.md", f"average precision is higher by {gain:.3f} on [{sets} rare classes]"),
    ] + [
        (page, text)
        for page in ("README.md", bench)
        for text in (
            f"`auto` leads LightGBM's defaults by {lead.mean():.3f}, of which aloi gives {100 * lead['aloi'] / lead.sum():.0f} %",
            f"On the other {WORDS[len(means) - 1]} sets, the EBM is {behind_ebm:.3f} above `auto`.",
            f"In {n_leaves} of the {n} fits, `auto` chose leaves",
            f"on all {sets} sets, and worse than the EBM on {n_below}. They take {ours:.1f} CPU seconds on average, and the EBM "
            f"takes {theirs:.0f}.",
            f"In {at_the_end} of the {n} fits, they chose the smallest `lam` that was tried",
        )
    ]


def of_defaults() -> Sentences:
    """Return the lines that count how the fits of each estimator end with its defaults, and the fit that does not converge."""
    fits = kept("defaults")
    fits["end"] = fits["status"].replace({"max-passes": "not done", "max-steps": "not done"})
    counts = fits.pivot_table(index="estimator", columns="end", values="data", aggfunc="count", sort=False)
    ends = counts[["converged", "stationary", "not done"]].map(lambda n: "" if pd.isna(n) else f"{n:.0f}")
    (late,) = fits.query("estimator == 'HingeClassifier' and status != 'converged'").to_dict("records")
    page = "docs/pages/benchmarks.md"
    return [
        *(
            (page, f"| {name} | {' | '.join(cells)} |".replace("  ", " "))
            for name, cells in zip(ends.index, ends.to_numpy(), strict=True)
        ),
        (
            page,
            f"One fit of `HingeClassifier` does not converge: it reaches a gap of {late['relative gap']:.4f} in 1,000 passes.",
        ),
        (page, f"The {fits['data'].nunique()} data sets are the digits"),
    ]


def of_the_top() -> Sentences:
    """Return the sentences about the top of the list."""
    seconds = kept("curves").groupby("system")["CPU seconds"].agg(["min", "max"])
    ours, theirs = seconds.loc["aucdist auto"], seconds.loc[BOOSTED]
    top = kept("top").query("data == 'all 20'").set_index("system")
    plain, trees = top.loc["LogisticRegression lbfgs"], top.loc["lightgbm"]
    return [
        (
            "docs/pages/benchmarks.md",
            f"`auto` took {ours['min']:.0f} to {ours['max']:.0f} CPU seconds, and LightGBM took {theirs['min']:.0f} to "
            f"{theirs['max']:,.0f}.",
        ),
        (
            "docs/pages/how-to/top-of-the-list.md",
            f"better than logistic regression on {plain['wins']:.0f} and worse on {plain['loses']:.0f}. Against LightGBM, it is "
            f"better on {trees['wins']:.0f}, worse on {trees['loses']:.0f} and not significantly different on "
            f"{trees['ties']:.0f} ([benchmarks]",
        ),
    ]


def of_simulations() -> Sentences:
    """Return the sentences about simulated guarantees and intervals."""
    models = kept("promoted-models")
    missed = kept("guarantees").query("what == 'guarantee'")["missed"]
    equal, runs = models["equal"].sum(), models["runs"].sum()
    most = f"{100 * missed.max() + 1e-9:.1f}"
    return [
        ("docs/pages/how-to/comparing.md", f"promoted {equal} of {runs:,} models"),
        ("docs/pages/benchmarks.md", f"At most {most} % of the thresholds missed"),
        (
            "docs/pages/how-to/guarantees.md",
            f"In {len(missed)} simulated cases with a confidence of 95 %, the share of thresholds that missed their guarantee "
            f"was between {100 * missed.min():.2f} and {most} %.",
        ),
    ]


def of_a_million_rows() -> Sentences:
    """Return the sentences about a million rows."""
    table = kept("shapes").set_index("system")
    ebm, ours = table.loc["EBM"], table.loc["bins + 10 pairs"]
    seconds = table["seconds"].map("{:.2f}".format)
    return [
        (
            "docs/pages/benchmarks.md",
            f"Its AUC is {ebm['AUC'] - ours['AUC']:.3f} above that of bins with ten interactions, and it takes "
            f"{ebm['seconds']:,.0f} seconds instead of {ours['seconds']:.2f}.",
        ),
        (
            "docs/pages/coming-from.md",
            f"an AUC of {ebm['AUC']:.3f} and took {ebm['seconds']:,.0f} seconds (0.4.0.dev0); bins with interactions "
            f"had {ours['AUC']:.3f} and took {ours['seconds']:.1f}",
        ),
        (
            "docs/pages/how-to/faq.md",
            f"a linear model took {seconds['linear']} seconds, bins took {seconds['bins']} and bins with ten interactions took "
            f"{seconds['bins + 10 pairs']}. LightGBM with its defaults took {seconds['LightGBM']} (`docs/benchmarks/shapes.csv`, "
            f"version {version('shapes')}).",
        ),
    ]


ALL = (
    of_auto, of_trees, of_lam, of_thresholds, of_pairs, of_passes, of_workers, of_many_rows, of_peers, of_rare_classes,
    of_defaults, of_the_top, of_simulations, of_a_million_rows,
)  # fmt: skip


def missing(sentences: Sentences) -> Sentences:
    """Return those that their page does not have, whatever the case of letters."""
    return [(page, text) for page, text in sentences if text.lower() not in said_by(page).lower()]


def main() -> None:
    """Print the sentences that a page does not have."""
    for sentences in ALL:
        for page, text in missing(sentences()):
            print(f"{page} should say: {text}")


if __name__ == "__main__":
    main()
