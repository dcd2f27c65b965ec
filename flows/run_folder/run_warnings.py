"""The warnings of a run: reasons to doubt its results, and notes about its columns. They are determined once, at its end."""

import json
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from aucdist.data.labels import listed
from aucdist.drift.leaks import Warned
from aucdist.errors import Json
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.named import find_metric
from aucdist.search.choice import CLEAR_SE, errors_behind
from aucdist.text import count_text, number_text, sentence

KEYS = {
    "ConvergenceWarning": "not-converged",
    "IntervalWarning": "interval-from-few-rows",
    "RankingWarning": "worse-than-chance",
    "CollapseWarning": "minimum-near-zero",
    "SeparationWarning": "separable-classes",
}
"""The keys of warnings of the library; those of other kinds are called ``fit``."""
MIN_TIED, MANY_TIED = 5, 0.25
"""There is a warning if at least this many rows, and this share of the flagged rows, have the lowest flagged score."""
EQUAL_SCORES = "equal-scores-at-threshold"
MIN_TRIED = 3
"""The smallest number of values that a search has to try before a warning about the end of a grid makes sense."""


def run_warnings(fitted: Any) -> list[Json]:
    """Return the entry ``warnings`` of ``metrics.json``: a list of ``key`` and ``text``.

    Parameters
    ----------
    fitted : object
        A `flows.run_folder.results.FittedRun`.
    """
    of_library = ((KEYS.get(kind, "fit"), sentence(text)) for kind, text in fitted.warned)
    messages = [*of_library, *_of_results(fitted), *choice_at_end(fitted.search or {}), *fitted.leaks]
    if described := getattr(fitted.config, "_described", None):
        known = {text for _, text in messages}
        columns = [*described.decisions, *(("column-in-question", text) for text in described.notes)]
        messages += [(key, said) for key, text in columns if (said := sentence(text)) not in known]
    # a setting replaces the columns that the configuration leaves out
    dropped = "".join(f"{json.dumps(name, ensure_ascii=False)}, " for name in fitted.rows.source.drop or ())
    return [{"key": key, "text": text.replace("drop=[", f"drop=[{dropped}")} for key, text in messages]


def _of_results(fitted: Any) -> Iterator[Warned]:
    evaluation, names, search = fitted.evaluation, fitted.rows.schema.classes, fitted.search or {}
    classes = dict(zip(names or ("",), evaluation.classes, strict=True))
    if any(model.certificate_.status == "stationary" for model in fitted.estimator.class_models):
        yield (
            "stationary-point",
            "The objective is not convex: the weights are a stationary point, and other weights may have a lower objective.",
        )
    if evaluation.test is None:
        yield (
            "no-test-rows",
            "There are no test rows: all metrics are of training rows, so they look better than they would on new rows. Keep "
            "rows back with `data.test={fraction: 0.2, seed: 0}`.",
        )
    elif absent := [name for name, row in classes.items() if row.test is None]:
        yield (
            "classes-not-tested",
            f"The means leave out {listed(absent)}, which have no positive or no negative test rows.",
        )
    if chance := [name for name, row in classes.items() if row.interval and row.interval.low <= 0.5]:
        of_classes = f" for {listed(chance)}" * bool(names)
        yield (
            "auc-may-be-chance",
            f"The interval of the AUC{of_classes} includes 0.5: these rows do not show that the ranking is better than chance.",
        )
    rows = "training" if evaluation.test is None else "test"
    intervals = [row.interval for row in classes.values() if row.interval]
    highest = fmean([interval.high for interval in intervals] or [1.0])
    if search.get("metric") == "auc" and highest < (search["interval"] or [0])[0]:
        later, value = getattr(fitted.config.data.test, "time", None), fmean(interval.value for interval in intervals)
        yield (
            "test-below-search",
            f"The {'mean ' * bool(names)}AUC of the {rows} rows ({value:.3f}) is far below the {'mean ' * bool(names)}AUC of the "
            f"search ({search['score']:.3f}). "
            f"{'The test rows are later than those of the folds: expect' if later else 'Expect'} the value of the {rows} rows.",
        )
    if names:
        return
    rows, counts = classes[""].reported
    if fitted.config.operating_point and (tied := tied_text(counts, fitted.estimator.raw_threshold, rows)):
        yield EQUAL_SCORES, tied


def tied_text(counts: ScoreCounts, threshold: float, rows: str) -> str:
    """Return a warning if many of the flagged rows share the lowest flagged score. Otherwise the text is empty."""
    tied, *others = (counts.pos + counts.neg)[counts.values > threshold].tolist() or [0.0]
    if tied < max(MIN_TIED, MANY_TIED * sum(others, tied)):
        return ""
    return (
        f"{count_text(tied)} {rows} rows have the lowest score that is flagged, and rows with equal scores are flagged together. "
        "The scores that set the threshold may have differed between such rows, so the result may be far from the target."
    )


def choice_at_end(search: Json) -> Iterator[Warned]:
    """Warn about each number that a search chose at the end of the values it tried.

    There is no warning unless the neighbouring value was clearly worse.

    Parameters
    ----------
    search : dict
        The object that ``aucdist cv --json`` prints. It is empty if there was no search.
    """
    best = search.get("best", {})
    for name, value in best.items():
        folds = {
            row["parameters"][name]: row["folds"]
            for row in search["table"]
            if isinstance(row["parameters"][name], int | float) and row["parameters"] | {name: value} == best
        }
        tried = sorted(folds)
        if len(tried) < MIN_TRIED or value not in (tried[0], tried[-1]):
            continue
        which, further, beside = ("smallest", "smaller", 1) if value == tried[0] else ("largest", "larger", -2)
        # The difference is NaN if the neighbouring value was dropped after some folds, because it was worse on them.
        if not errors_behind(folds[tried[beside]], folds[value], find_metric(search["metric"])) <= CLEAR_SE:
            ratio = value / (tried[beside] or 1.0)
            more = ", ".join(number_text(value * ratio**k) for k in range(3))
            yield (
                "choice-at-end-of-grid",
                f"The best {name}, {number_text(value)}, is the {which} value tried, and the next one was clearly worse. Try "
                f"{further} values with `grid.{name}=[{more}]`.",
            )
