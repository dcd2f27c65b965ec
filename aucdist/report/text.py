"""Format numbers and results as text for the terminal, Prefect and the pages, and render pages from templates.

A page is one self-contained HTML file, without scripts and external resources.
"""

import functools
import math
import re
import shlex
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from aucdist.errors import Json, counted
from aucdist.extras import load_optional
from aucdist.text import (
    NOT_BOUNDED,
    auc_text,
    auc_with_interval,
    certificate_text,
    count_text,
    difference_text,
    ends_text,
    excess_text,
    number_text,
    parameters_text,
    percent_text,
    proved_excess,
    rounded_up_text,
    seconds_text,
    value_text,
)

SET_ON = {
    "training": "the training rows, which the fit has seen",
    "out_of_fold": "out-of-fold scores of the training rows: each score is from a model that has not seen the row",
    "threshold_rows": "the threshold rows, which the fit has not seen",
    "test": "the test rows themselves (these figures look better than those of new rows)",
}
"""The rows that set a threshold."""
NOT_CHANCE = " by more than chance explains"
"""The end of the sentence about a target that lies outside the interval of the test rows."""
GUARANTEES = {
    "recall": ("recall", "least"),
    "precision": ("precision", "least"),
    "fpr": ("false positive rate", "most"),
    "alerts": ("share of alerts", "most"),
}
"""The rates that may have a target or a guarantee: the name of each, and whether it has to be at least or at most so large."""
DEFAULT_THRESHOLDS = {
    "HingeClassifier": "the threshold is the intercept that was fitted",
    "LinkClassifier": "a row is flagged if its probability is above 0.5",
}
"""The threshold of an estimator without an operating point. All other estimators take the threshold with the largest G-mean."""
COLUMN_NOTES = {"columns-left-out", "numbers-may-be-codes", "number-for-missing"}
"""The keys of entries of ``warnings`` that are notes about how columns were read. An entry that asks a question is a note too."""


def summary_rows(run: Json) -> list[tuple[str, str]]:
    """Return the labels and values of the summary table of a run, of two classes or of several.

    Parameters
    ----------
    run : dict
        The object that ``aucdist train --json`` prints.
    """
    metrics, classes = run["metrics"], run.get("classes")
    passes = f"{number_text(run['passes'], 6)} pass{'es' * (run['passes'] != 1)}"
    n_rows = counted(run["n_samples"], "row")
    if classes is None:
        certificate, n_rows = run["certificate"], _rows_text(run, "n")
        others = [
            f"{row['name']}: AUC {auc_text(row['test_auc'])}, average precision {auc_text(row['average_precision'])}."
            for row in run.get("baselines", ())
        ]
        rows = [
            ("Test data", _rows_text(run, "n_test") if "n_test_pos" in run else None),
            ("Test AUC", auc_with_interval(metrics["test_auc"], metrics["test_auc_interval"])),
            (
                "Test average precision",
                auc_with_interval(
                    metrics.get("test_average_precision"), metrics.get("test_average_precision_interval")
                ),
            ),
            ("Other models", " ".join([*others, *baseline_tests(run)])),
            *(group_rows(run["groups"]) if "groups" in run else []),
            *decision_rows(run),
            ("Train AUC", auc_text(metrics["train_auc"])),
            (
                "Objective",
                f"{number_text(certificate['primal'], 5)}, lower bound {number_text(certificate['dual'], 5)}",
            ),
            ("Certificate", certificate_text(certificate)),
            ("Status", f"{certificate['status']} after {passes}"),
        ]
    else:
        converged = sum(row["certificate"]["status"] == "converged" for row in classes)
        weighted, accuracy = (metrics.get(name) for name in ("test_auc_weighted", "test_accuracy"))
        rows = [
            ("Topics" if run["topics"] else "Classes", f"{len(classes):,}"),
            ("Mean train AUC", auc_text(metrics["train_auc"])),
            ("Mean test AUC", auc_text(metrics["test_auc"])),
            ("Mean test AUC, weighted by rows", None if weighted is None else auc_text(weighted)),
            ("Test accuracy", None if accuracy is None else percent_text(accuracy)),
            ("Operating points", operating_points_text(classes) if "operating_point" in classes[0] else None),
            ("Certificates", f"{objectives_text(run)} {converged} of {len(classes)} converged after {passes}"),
        ]
    rows = [
        ("Run", str(run["run"])),
        ("Estimator", f"{run['estimator']}, solver {run['solver']}"),
        ("Training data", f"{n_rows}, {counted(run['n_features'], 'feature')}"),
        *rows,
        ("Time", ", ".join(f"{stage} {seconds_text(value)}" for stage, value in run["seconds"].items())),
        *(("Warning", text) for text in warning_texts(run)),
        *(("Columns", text) for text in warning_texts(run, notes=True)),
    ]
    return [(label, value) for label, value in rows if value]


def warning_texts(run: Json, *, notes: bool = False) -> list[str]:
    """Return the warnings of a run, with commands in place of the settings that they advise.

    Parameters
    ----------
    run : dict
        The object that ``aucdist train --json`` prints.
    notes : bool, default=False
        Whether to return the notes about columns, in place of the reasons to doubt the results.
    """
    config = shlex.quote(f"{run['run']}/config.yaml")

    def as_command(match: re.Match[str]) -> str:
        """Return the command that repeats the run with the settings that were found in a text."""
        settings = " ".join(f"--set {shlex.quote(setting)}" for setting in match[1].split("; "))
        command = "aucdist cv" if "grid" in settings else run.get("command", "aucdist train")
        return f"`{command} {config} {settings}`"

    return [
        re.sub("`((?:data|folds|grid)[.=][^`]+)`", as_command, entry["text"])
        for entry in run.get("warnings", ())
        if (entry["key"] in COLUMN_NOTES or entry["text"].endswith("?")) == notes
    ]


def _rows_text(run: Json, part: str) -> str:
    """Describe how many rows there are, and how many of them are positive.

    `part` is the prefix of the keys of the counts, such as ``train``.
    """
    n_pos, n_neg = run[f"{part}_pos"], run[f"{part}_neg"]
    n_rows = n_pos + n_neg
    return f"{counted(n_rows, 'row')}, {n_pos:,} positive ({percent_text(n_pos / n_rows)})"


def group_rows(groups: Json) -> list[tuple[str, str]]:
    """Return the labels and values that describe the groups of a run: how many have pairs, and the metrics within test groups.

    Parameters
    ----------
    groups : dict
        ``groups`` of the object that ``aucdist train --json`` prints.
    """
    from aucdist.metrics.named import find_metric  # imported here, because every command imports this module

    if not groups["grouped"]:
        return []
    without = groups["without_pairs"]
    rest = f"; {without:,} more {'has' if without == 1 else 'have'} rows of one class only" if without else ""
    rows = [("Groups", f"{groups['with_pairs']:,} with pairs{rest}")]
    for name, metric in groups["metrics"].items():
        equally = " with equal weights" if name == "group_auc" and groups.get("group_weight") == "groups" else ""
        value = auc_with_interval(metric["value"], metric["interval"])
        rows.append((find_metric(name).heading, f"{value} over {counted(metric['groups'], 'group')}{equally}"))
    return rows


def target_text(target: Json) -> str:
    """Describe the target of an operating point, in words that follow "The threshold was set for"."""
    name, value = _rate_and_limit(target)
    if "per" in target:
        return f"at most {number_text(value)} alert{'s' * (value != 1)} {'a' if target['per'] == 'day' else 'in'} {target['per']}"
    if name == "cost":
        texts = ["the row's own amount" if isinstance(cost, str) else number_text(cost) for cost in value.values()]
        return "the lowest cost, at {} for a false positive and {} for a miss".format(*texts)
    noun, bound = GUARANTEES[name]
    return f"a {noun} of at {bound} {number_text(100 * value, 4)} %"


def _rate_and_limit(target: Json) -> tuple[str, Any]:
    """Return the name of the rate that has a target, and the value of the target."""
    return next((name, value) for name, value in target.items() if name not in ("per", "confidence"))


def set_for_text(point: Json) -> str:
    """Describe in a sentence what a threshold was set for, and on which rows.

    `point` is the ``operating_point`` of a run, see `point_rows`.
    """
    return f"The threshold was set for {target_text(point['target'])}, on {SET_ON[set_on_of(point)]}."


def _beside_target(point: Json) -> str:
    """Describe how the rate on the test rows compares with its target, in sentences.

    The text is empty where no comparison is possible: if the target is a cost, if no row is flagged, if other rows were
    measured, or if the test rows set the threshold. `point` is the ``operating_point`` of a run, see `point_rows`.
    """
    (name, limit), set_on = _rate_and_limit(point["target"]), set_on_of(point)
    per, by_day, share = point["target"].get("per", "1 rows"), point.get("alerts_per_day"), point["alerts"]["value"]
    if name == "cost" or not point["rows"] == "test" != set_on or share == 0 or (per == "day" and by_day is None):
        return ""
    n_rows = by_day / share if per == "day" else float(per.removesuffix(" rows"))
    noun, bound = GUARANTEES[name]
    side, sign = ("below", -1) if bound == "least" else ("above", 1)
    value, ends = point[name]["value"], point[name]["interval"] or ()
    over = [sign * (n_rows * rate - limit) for rate in (value, *ends)]
    kept = over[0] <= 0
    result = "meets the target" if kept else f"is {side} the target"
    if min(over) <= 0 < max(over):
        result += f". The interval contains the target, so on new rows the target may be {'missed' if kept else 'met'}"
    elif ends and not kept:
        result += NOT_CHANCE
    measured = _rate_text(point[name])
    if "per" in point["target"]:
        unit = "a day" if per == "day" else f"in {per}"
        measured = f"{number_text(n_rows * value)} {unit}{ends_text(ends, lambda rate: number_text(n_rows * rate))}"
        noun = "number of alerts"
    return f"The {noun} of the test rows, {measured}, {result}."


def operating_points_text(classes: Sequence[Json]) -> str:
    """Describe the results of the thresholds of several classes in sentences.

    Parameters
    ----------
    classes : sequence of dict
        ``classes`` of the object that ``aucdist train --json`` prints. Each has an ``operating_point``.
    """
    points = [row["operating_point"] for row in classes]
    recalls, kept = [point["recall"]["value"] for point in points], ""
    if "guarantee" in points[0]:
        guarantees = [point["guarantee"] for point in points]
        kept = (
            f" {sum(row['meets_target'] for row in guarantees)} of {len(points)} thresholds guarantee their target, with "
            f"{number_text(100 * guarantees[0]['confidence'])} % confidence each. A guarantee is missed more often if rows "
            "come in groups or change over time."
        )
    return (
        f"Each class has its own threshold. {set_for_text(points[0])} On the {points[0]['rows']} rows, the mean recall of the "
        f"classes is {percent_text(sum(recalls) / len(recalls))}, and the lowest is {percent_text(min(recalls))}.{kept}"
    )


def decision_rows(run: Json) -> list[tuple[str, str]]:
    """Return (label, text) for the threshold of a run of two classes.

    Parameters
    ----------
    run : dict
        The object that ``aucdist train --json`` prints.
    """
    if point := run.get("operating_point"):
        return point_rows(point, run.get("baselines", ()))
    point = run["decisions"]
    how = DEFAULT_THRESHOLDS.get(
        run["estimator"], f"the threshold has the largest G-mean on {SET_ON[set_on_of(point)]}"
    )
    command = f"aucdist threshold {shlex.quote(run['run'])} --alerts 0.01"
    text = f"No target was given, so {how}. To set another threshold without another fit, run `{command}`"
    text += ", but new rows may miss the target, because the fit has seen these rows" * (set_on_of(point) == "training")
    return [*point_rows(point, run.get("baselines", ())), ("Threshold", f"{text}.")]


def point_rows(point: Json, baselines: Sequence[Json] = ()) -> list[tuple[str, str]]:
    """Return labels and texts about a threshold: its result, how it was set, and other models with the same number of alerts.

    Without a target, models are compared by as many rows as there are positive ones.

    Parameters
    ----------
    point : dict
        ``operating_point`` of the object that ``aucdist train --json`` prints, or ``decisions``, whose target is empty.
    baselines : sequence of dict, default=()
        The baselines of the run.
    """
    rows, share = point["rows"], percent_text(point["alerts"]["value"])
    flagged = f"{share} of the {rows} rows"
    right = missed = others = costs = highest = ""
    if "n_pos" in point:  # The rows have no weights, and the run was made by this version.
        k, n_pos = point["n_alerts"], point["n_pos"]
        n_right = round(point["recall"]["value"] * n_pos)
        a_day = f", {number_text(point['alerts_per_day'])} a day" if "alerts_per_day" in point else ""
        flagged = f"{k:,} of {point['n_rows']:,} {rows} rows ({share}{a_day})"
        right = f": {n_right:,} of the {counted(k, 'flagged row')} {'is' if 1 in (n_right, k) else 'are'} positive"
        n_missed = n_pos - n_right
        missed = (
            f": {n_missed:,} of {counted(n_pos, 'positive row')} {'is' if 1 in (n_missed, n_pos) else 'are'} missed"
        )
        if "r_precision" in point:
            k, n_right = n_pos, round(point["r_precision"] * n_pos)
            highest = (
                f"{percent_text(point['r_precision'])}: {n_right:,} of the {counted(k, f'{rows} row')} with the highest scores "
                f"{'is' if 1 in (n_right, k) else 'are'} positive. This is the precision of as many rows as there are positive "
                f"ones. A random order would have {percent_text(n_pos / point['n_rows'])}."
            )
        if k and baselines:
            others = f"With {counted(k, 'alert')} each, this model finds {counted(n_right, 'positive row')}"
            for row in baselines:
                name, n_found = row["name"], round(row["rates"]["recall"] * n_pos)
                others += f". {name[0].upper()}{name[1:]} finds {n_found:,}, which is {_more_text(n_found - n_right)}"
                # Rounded outwards to whole rows, so that the interval gets no narrower.
                if test := row["differences"].get("recall"):
                    ends = math.floor(n_pos * test["low"] + 1e-6), math.ceil(n_pos * test["high"] - 1e-6)
                    others += f" (95 % interval: {' to '.join(map(_more_text, ends))})"
            others += ". A difference may be chance if its interval contains 0."
    if expected := point.get("expected_cost"):
        value, without = (number_text(100 * expected[name]) for name in ("value", "without_model"))
        interval = ends_text(expected["interval"], lambda end: number_text(100 * end))
        costs = (
            f"Wrong decisions cost {value} per 100 {rows} rows{interval}. Without a model, the cheaper of flagging all rows and "
            f"flagging none would cost {without}."
        )
    described = {
        "R-precision": highest,
        "Flagged": f"{flagged}.",
        "Precision": f"{_rate_text(point['precision'])}{right}." if point["alerts"]["value"] else "",
        "Recall": f"{_rate_text(point['recall'])}{missed}.",
        "Costs": costs,
        "Threshold": set_for_text(point) if point["target"] else "",
        "Target": _beside_target(point) if point["target"] else "",
        "Guarantee": guarantee_text(point),
        "Equal number of alerts": others,
    }
    return [(label, text) for label, text in described.items() if text]


def _more_text(n: int) -> str:
    return f"{abs(n):,} {'fewer' if n < 0 else 'more'}" if n else "the same number"


def guarantee_text(point: Json) -> str:
    """Describe the guarantee of a threshold in a sentence. The text is empty if no guarantee was requested.

    `point` is the ``operating_point`` of a run, see `point_rows`.
    """
    if not (guarantee := point.get("guarantee")):
        return ""
    goal, (noun, bound) = target_text({guarantee["metric"]: guarantee["target"]}), GUARANTEES[guarantee["metric"]]
    n_pos, n_neg = guarantee["n_pos"], guarantee["n_neg"]
    known = {"test": "test", "threshold_rows": "threshold"}.get(set_on_of(point), "training")
    rows = f"the {known} rows ({n_pos + n_neg:,} rows, {n_pos:,} of them positive)"
    sure = f"{number_text(100 * guarantee['confidence'])} % confidence"
    if guarantee["meets_target"]:
        text = (
            f"With {sure}, the threshold guarantees {goal} on new rows drawn like {rows}. It is missed more often if rows "
            "come in groups or change over time."
        )
        text += " This is approximate, because five other models gave these scores." * (
            set_on_of(point) == "out_of_fold"
        )
        if NOT_CHANCE in _beside_target(point):
            text += f" The test rows contradict it: new rows are not drawn like the {known} rows. Do not rely on this guarantee."
        return text
    share = guarantee["guaranteed"]  # rounded in the direction in which the guarantee still holds
    best = f"{math.floor(1e4 * share) / 100:g}" if bound == "least" else rounded_up_text(100 * share)
    return f"No threshold can guarantee {goal} with {sure}, given {rows}. The best guarantee is a {noun} of at {bound} {best} %."


def set_on_of(point: Json) -> str:
    """Return the name of the rows that set a threshold. Older runs only say whether the scores were out of fold."""
    return str(point.get("set_on", "out_of_fold" if point.get("out_of_fold") else "training"))


def search_verdict(search: Json) -> str:
    """Return the result of a search as a sentence.

    Parameters
    ----------
    search : dict
        The object that ``aucdist cv --json`` prints, or ``search`` of a run.
    """
    from aucdist.metrics.named import find_metric  # imported here, because every command imports this module

    best, measured = parameters_text(search["best"]), find_metric(search["metric"]).phrase
    score, spread = search["score"], search["interval"]
    if score is None:
        return f"Chosen: {best}; no score, because a fold failed."
    if "of_classes" in search:
        n, topics = len(search["of_classes"]["rows"]), search["of_classes"]["topics"]
        measured += f" of {n} {'topics' if topics else 'classes'}"
    folds = "by nested cross-validation" if search["nested"] else f"over {len(search['table'][0]['folds'])} folds"
    return f"Chosen: {best}. The mean {measured} {folds} is {auc_with_interval(score, spread)}."


def objectives_text(run: Json) -> str:
    """Describe in a sentence how far the objectives of several classes can be above their minima.

    `run` is the object that ``aucdist train --json`` prints.
    """
    proved = [excess for row in run["classes"] if (excess := proved_excess(row["certificate"])) is not None]
    if not proved:
        return f"The training objectives are {NOT_BOUNDED}."
    return (
        f"For {'each' if len(proved) == len(run['classes']) else len(proved)} of the {len(run['classes'])} "
        f"{'topics' if run['topics'] else 'classes'}, the training objective is at most {excess_text(max(proved))} above its "
        "minimum."
    )


def directions_text(free: Json) -> str:
    """Describe in a sentence what monotonic constraints cost.

    Parameters
    ----------
    free : dict
        ``objective``, ``train_auc`` and ``test_auc`` (or None) of a fit without constraints, and ``monotone`` with the same
        values of the model.
    """
    key, rows = ("train_auc", "training") if free["test_auc"] is None else ("test_auc", "test")
    areas = free["monotone"][key], free[key]  # both get the same decimals
    return f"With monotonic constraints, the {rows} AUC is {auc_text(*areas)}. Without them, it is {auc_text(*areas[::-1])}."


def baseline_tests(run: Json) -> list[str]:
    """Describe in a sentence each, for AUC and average precision, whether the model or the best baseline is higher."""
    return [
        difference_sentence(f"test {metric}", (name, "this model"), test, significant=test["low"] * test["high"] > 0)
        for metric, name, test in best_baselines(run)
    ]


def best_baselines(run: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield for AUC and average precision the name of the best baseline, and how much higher it is than the model."""
    tested = [row for row in run.get("baselines", ()) if row["differences"]]
    for key, metric in (("test_auc", "AUC"), ("average_precision", "average precision")) if tested else ():
        best = max(tested, key=itemgetter(key))
        yield metric, best["name"], best["differences"][key]


def difference_sentence(metric: str, names: tuple[str, str], test: Json, p: str = "", *, significant: bool) -> str:
    """Describe in a sentence which of two models has the higher metric, by how much, and whether the difference is significant.

    Parameters
    ----------
    metric : str
        The name of the metric.
    names : tuple (str, str)
        The names of the models. The difference is the metric of the first minus that of the second.
    test : dict
        ``value``, ``low`` and ``high`` of the difference.
    p : str, default=""
        A text that follows the interval, such as the p-value.
    significant : bool
        Whether the difference is significant.
    """
    value, ends = test["value"], (test["low"], test["high"])
    if value == 0:
        return f"{names[0]} and {names[1]} have the same {metric}."
    if value < 0:
        names, ends = names[::-1], (-test["high"], -test["low"])
    but = "" if significant else ", but not significantly"
    return (
        f"The {metric} of {names[0]} is higher than that of {names[1]} by {difference_text(abs(value))}{but} (95 % interval "
        f"{' to '.join(map(difference_text, ends))}{p})."
    )


def _rate_text(rate: Json) -> str:
    return percent_text(rate["value"]) + ends_text(rate["interval"], percent_text)


def _unbroken(text: str) -> str:
    """Return a text in which lines do not break between a number and its unit."""
    return text.replace(" %", "\u00a0%")


def _with_code(sentence: str) -> Any:
    """Return a sentence as HTML. Text in backticks becomes code."""
    markupsafe = load_optional("markupsafe")
    return markupsafe.Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(_unbroken(sentence)))))


FILTERS = {
    "code": _with_code,
    "auc": auc_text,
    "auc_with_interval": auc_with_interval,
    "count": count_text,
    "difference": difference_text,
    "excess": lambda excess: _unbroken(excess_text(excess)),
    "number": number_text,
    "parameters": parameters_text,
    "percent": lambda share: _unbroken(percent_text(share)),
    "seconds": seconds_text,
    "value": value_text,
}
"""The filters of templates for numbers and parameters, as in ``{{ area | auc }}``."""


def render_template(template: Path, **values: Any) -> str:
    """Return a page rendered from a template.

    Parameters
    ----------
    template : Path
        An HTML template. It may extend ``base.html`` of this folder.
    **values : object
        The variables of the template.
    """
    page = _environment(template.parent).get_template(template.name).render(**values)
    # Names of files and features may contain lone surrogates, which UTF-8 cannot encode.
    return page.encode("utf-8", "replace").decode("utf-8")


@functools.cache
def _environment(folder: Path) -> Any:
    """Return the cached Jinja environment of a folder, because compiling templates takes longer than rendering a page."""
    jinja2 = load_optional("jinja2")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.FileSystemLoader([folder, Path(__file__).parent]),
    )
    environment.filters |= FILTERS
    return environment
