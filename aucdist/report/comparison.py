"""The page of a comparison of runs, of two classes or of several."""

from collections.abc import Sequence
from pathlib import Path

from aucdist.errors import Json, counted, shortened
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.named import NAMED_METRICS, WITHIN_GROUPS, find_metric
from aucdist.report import plots
from aucdist.report.text import difference_sentence, point_rows, render_template
from aucdist.text import difference_text, number_text

CLASS_METRICS = {"test_auc": "Mean test AUC", "test_auc_weighted": "Weighted", "test_accuracy": "Accuracy"}
BY_CLASS = "paired sign-flip test of each class"
SIGNIFICANCE = 0.05
MAX_TEXT = 60
"""The largest number of characters of a setting in a sentence."""


def render_comparison_page(result: Json, curves: Sequence[tuple[str, ScoreCounts]]) -> str:
    """Return the page as HTML. Equal arguments give equal text.

    Parameters
    ----------
    result : dict
        The object that ``aucdist compare --json`` prints.
    curves : sequence of tuple (str, ScoreCounts)
        The name and the counts of the test scores of each run of two classes. It is empty for several classes.
    """
    runs, max_fpr = result["runs"], result.get("max_fpr")
    if "classes" in result:
        tests = [_tests_section("Differences of the test AUC", BY_CLASS, result["differences"])]
        if "cost_differences" in result:
            tests.append(
                _tests_section("Differences of the expected cost of a test row", BY_CLASS, result["cost_differences"])
            )
        columns = CLASS_METRICS
    else:
        columns = {
            name: (find_metric(f"partial_auc@{max_fpr}") if name == "partial_auc" else NAMED_METRICS[name]).heading
            for name in runs[0]
            if name in NAMED_METRICS
        }
        tests = []
        for name, pairs in result["differences"].items():
            within_groups = name.partition("@")[0] in WITHIN_GROUPS
            method = "sign-flip test of groups" if within_groups else "paired sign-flip test"
            tests.append(_tests_section(columns.get(name) or find_metric(name).heading, method, pairs))
    texts = comparison_sentences(result)
    figures = {
        name: plots.inline_svg(name, heading, " ".join(texts), plots.roc_curves, curves=curves, log_x=name == "roc-low")
        for name, heading in (("roc", "ROC curves"), ("roc-low", "ROC curves at low false positive rates"))
        if curves
    }
    return render_template(
        Path(__file__).with_name("comparison.html"),
        title=f"Comparison of {len(runs)} runs",
        result=result,
        sentences=texts,
        warnings=warnings_of_runs(result),
        columns=columns,
        level=SIGNIFICANCE,
        p_text=p_text,
        decisions=[(run["name"], point_rows(run["decisions"])) for run in runs if "decisions" in run],
        classes=sorted(result.get("classes", ()), key=lambda row: (min(row["auc"].values()), row["name"])),
        tests=tests,
        figures=figures,
    )


def warnings_of_runs(result: Json) -> list[str]:
    """Return the warnings of all runs, each once and with the names of its runs.

    If warnings differ only in the folder of the run, the command is that of the first of these runs.
    """
    alike: Json = {}
    for run in result["runs"]:
        for text in run["warnings"]:
            alike.setdefault(text.replace(f"{run['run']}/", ""), (text, []))[1].append(run["name"])
    return [
        f"{'both runs' if len(names) == len(result['runs']) == 2 else ', '.join(names)}: {text}"
        for text, names in alike.values()
    ]


def comparison_sentences(result: Json) -> list[str]:
    """Return the results of the tests, one sentence for each pair of runs and each metric."""
    differences, texts = result["differences"], []
    if "classes" in result:  # count the classes in which either run is higher, with p-values corrected for all tests
        for tests, metric in ((differences, "test AUC"), (result.get("cost_differences", ()), "expected cost")):
            pairs = dict.fromkeys((test["first"], test["second"]) for test in tests)
            for first, second in pairs:
                values = [test for test in tests if (test["first"], test["second"]) == (first, second)]
                significant = [test for test in values if test["p_holm"] <= SIGNIFICANCE]
                higher = sum(test["value"] > 0 for test in significant)
                mean = difference_text(sum(test["value"] for test in values) / len(values))
                texts.append(
                    f"{first} minus {second}: the mean difference of the {metric} over {counted(len(values), 'class')} is "
                    f"{mean}. It is significant for {counted(len(significant), 'class')}; {first} is higher in {higher} of them."
                )
        return texts
    same = {(pair["first"], pair["second"]): pair["threshold_difference"] for pair in result["same_scores"]}
    texts += [
        f"{first} and {second} rank the test rows equally: their scores differ by a constant only. The threshold of {first} is "
        f"{number_text(abs(t), 4)} {'higher' if t > 0 else 'lower'}."
        for (first, second), t in same.items()
    ]
    metrics = {
        "group_auc": "test AUC within groups",
        "auc": "test AUC of all rows together" if "group_auc" in differences else "test AUC",
        "partial_auc": f"partial AUC up to a false positive rate of {number_text(result.get('max_fpr'))}",
        "expected_cost": "expected cost",
        "average_precision": "average precision",
    }
    for name, metric in metrics.items():
        for test in differences.get(name, ()):
            p, names = p_text(test["p_holm"]), (test["first"], test["second"])
            p = f", p {p if p.startswith('below') else f'= {p}'}"
            if names not in same or name == "expected_cost":
                texts.append(difference_sentence(metric, names, test, p, significant=test["p_holm"] <= SIGNIFICANCE))
    return texts


def decision_lines(result: Json) -> list[str]:
    """Return lines that list the settings that differ, and what each run of two classes flags at its threshold."""
    texts = [
        f"The setting {row['setting']} differs: "
        f"{', '.join(f'{shortened(value, MAX_TEXT)} in {name}' for name, value in row['values'].items())}."
        for row in result["settings"]
    ]
    for run in result["runs"]:
        if "decisions" in run:
            texts += [f"{run['name']}:", *(f"  {label}: {text}" for label, text in point_rows(run["decisions"]))]
    return texts


def p_text(p: float) -> str:
    """Return a p-value as text."""
    return "below 0.0001" if p < 1e-4 else number_text(p, 2)


def _tests_section(heading: str, method: str, tests: Sequence[Json]) -> Json:
    """Return the variables of a section of tests for the template.

    Each test is one row. For several classes, the rows are sorted by their p-values, the smallest first.
    """
    if "class" in tests[0]:
        tests = sorted(tests, key=lambda test: (test["p_holm"], -abs(test["value"]), test["class"]))
    return {"heading": heading, "method": method, "rows": tests}
