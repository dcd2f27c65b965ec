"""How often guarantees are missed, how much they cost, and how soon a missed one is seen: docs/benchmarks/guarantees.csv.

``PYTHONPATH=tests python -m benchmarks.guarantees`` makes the file anew, in about a quarter of an hour.

Scores are normal in both classes, and each row is positive with the probability of the prevalence. At the threshold with a
precision of .8, or the other figures in `ASKED`, a case has a recall of .6.
"""

import csv
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.guarantees import ALARM_E_VALUE, evidence_against, guaranteed_threshold

KEPT = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "guarantees.csv"
RECALL, PRECISION = 0.6, 0.8


@dataclass(frozen=True)
class Case:
    """What is promised, of which rows."""

    measure: str
    prevalence: float
    n_pos: int

    def __str__(self) -> str:
        return f"{self.measure}-{self.prevalence:g}-{self.n_pos}"

    @property
    def best(self) -> float:
        """The threshold with the recall and the precision above."""
        odds = PRECISION / (1 - PRECISION) * (1 - self.prevalence) / self.prevalence
        return float(stats.norm.isf(RECALL / odds))

    @property
    def distance(self) -> float:
        """Between the means of both classes."""
        return self.best - float(stats.norm.isf(RECALL))

    def rates(self, threshold: float) -> dict[str, float]:
        """What a threshold has among new rows."""
        recall, fpr = stats.norm.sf(threshold - self.distance), stats.norm.sf(threshold)
        alerts = self.prevalence * recall + (1 - self.prevalence) * fpr
        precision = self.prevalence * recall / alerts if alerts > 0 else 1.0
        return {"recall": recall, "fpr": fpr, "alerts": alerts, "precision": precision}


CASES = [
    Case(measure, prevalence, n_pos)
    for measure in ("precision", "recall", "fpr", "alerts")
    for prevalence in (0.2, 0.02, 0.001)
    for n_pos in (30, 100, 1000)
]


def samples(case: Case, repeats: int, seed: int) -> Iterator[ScoreCounts]:
    """Yield the counts of samples; negatives far below all thresholds share one score."""
    random, low = np.random.default_rng(seed), case.best - 1.5
    for _ in range(repeats):
        n = round(case.n_pos / case.prevalence)
        n_pos = int(random.binomial(n, case.prevalence))
        above = int(random.binomial(n - n_pos, stats.norm.sf(low)))
        negatives = np.append(stats.norm.isf(random.random(above) * stats.norm.sf(low)), low)
        scores = np.concatenate([random.normal(size=n_pos) + case.distance, negatives])
        counts = ScoreCounts.from_scores(np.repeat([1, -1], [n_pos, above + 1]), scores)
        neg = counts.neg + (counts.values == low) * (n - n_pos - above - 1)
        yield ScoreCounts(counts.values, counts.pos, neg, n_pos, n - n_pos)


def share_of_misses(case: Case, repeats: int, seed: int = 0) -> dict[str, float]:
    """Return how often a promise is broken and how often none could be made, and the mean figures of those that were made."""
    asked = case.rates(case.best)[case.measure]
    least = case.measure in ("precision", "recall")
    wrong = refused = 0
    true, recalls = [], []
    for counts in samples(case, repeats, seed):
        guarantee = guaranteed_threshold(counts, **{case.measure: asked})
        rates = case.rates(guarantee.threshold)
        value = rates[case.measure]
        wrong += value < guarantee.guaranteed if least else value > guarantee.guaranteed
        refused += not guarantee.meets_target
        if guarantee.meets_target:
            true.append(value)
            recalls.append(rates["recall"])
    mean = [float(np.mean(column)) if column else math.nan for column in (true, recalls)]
    return {
        "asked": asked,
        "missed": wrong / repeats,
        "not possible": refused / repeats,
        "mean metric": mean[0],
        "recall": mean[1],
    }


def watched(
    allowed: float, share: float, per_week: int, since: int, weeks: int, repeats: int, seed: int = 0
) -> np.ndarray:
    """Return in which week each of some years raised its first alarm; 0 where none did.

    `share`: of bad rows from week `since` on; before that it is what is allowed.
    """
    random, first = np.random.default_rng(seed), np.zeros(repeats, dtype=int)
    shares = np.where(np.arange(weeks) < since, allowed, share)
    for i in range(repeats):
        bad = random.binomial(per_week, shares)
        for week in range(1, weeks + 1):
            if evidence_against(bad[:week], [per_week] * week, allowed) >= ALARM_E_VALUE:
                first[i] = week
                break
    return first


def rows(repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table."""
    for case in CASES:
        shares = {key: f"{value:.4g}" for key, value in share_of_misses(case, repeats).items()}
        yield {
            "what": "guarantee",
            "measure": case.measure,
            "prevalence": case.prevalence,
            "positives": case.n_pos,
            **shares,
        }
    for allowed, per_week in ((0.2, 50), (0.2, 350), (0.1, 350), (0.05, 350), (0.05, 1000)):
        false = watched(allowed, allowed, per_week, 52, 52, repeats)
        yield {
            "what": "false alarms",
            "asked": 1 - allowed,
            "labels a week": per_week,
            "missed": f"{np.mean(false > 0):.4g}",
        }
        for since in (0, 26):
            weeks = watched(allowed, allowed + 0.05, per_week, since, since + 104, max(repeats // 10, 20))
            delay = np.where(weeks > since, weeks - since, np.inf)[(weeks == 0) | (weeks > since)]
            middle, late = (float(np.quantile(delay, q, method="higher")) for q in (0.5, 0.9))
            about = {"what": "loss of .05", "asked": 1 - allowed, "labels a week": per_week, "since week": since}
            yield about | {"weeks, median": middle, "weeks, 90 %": late}


def lines() -> Iterator[str]:
    """Yield the tables of the page on alert queues, from the file: each with the range over the prevalences."""
    with KEPT.open(encoding="utf-8", newline="") as file:
        kept = list(csv.DictReader(file))

    def between(some: list[dict[str, str]], column: str) -> str:
        ends = [f"{end([float(row[column]) for row in some]):.2g}" for end in (min, max)]
        ends = [np.format_float_positional(float(text), trim="-") for text in ends]
        return " to ".join(dict.fromkeys(ends))

    yield "| asked for | positives | missed | not possible | mean of the metric | mean recall |"
    yield "|---|---|---|---|---|---|"
    for measure in ("precision", "recall", "fpr", "alerts"):
        for n_pos in ("30", "100", "1000"):
            some = [row for row in kept if (row["measure"], row["positives"]) == (measure, n_pos)]
            asked = f"{measure} {between(some, 'asked')}"
            cells = (between(some, column) for column in ("missed", "not possible", "mean metric", "recall"))
            yield f"| {asked} | {n_pos} | {' | '.join(cells)} |"
    yield "| guaranteed | labels a week | years with a false alarm | weeks to an alarm | weeks to nine in ten alarms |"
    yield "|---|---|---|---|---|"
    for false, first, later in zip(*(kept[len(CASES) + k :: 3] for k in range(3)), strict=True):
        weeks = (between([first, later], column) for column in ("weeks, median", "weeks, 90 %"))
        yield f"| {false['asked']} | {false['labels a week']} | {false['missed']} | {' | '.join(weeks)} |"


def main(repeats: int = 2000) -> None:
    """Write the file."""
    columns = [
        "what", "measure", "prevalence", "positives", "asked", "missed", "not possible", "mean metric", "recall", "labels a week",
        "since week", "weeks, median", "weeks, 90 %",
    ]  # fmt: skip
    with KEPT.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        table.writeheader()
        for row in rows(repeats):
            table.writerow(row)
            file.flush()
            print(row, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
