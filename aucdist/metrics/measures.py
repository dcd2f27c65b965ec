"""The measures that searches, comparisons and bootstrap intervals know by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from aucdist.errors import unknown
from aucdist.metrics.auc import auc, average_precision, balanced_accuracy, confusion, g_mean
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.probability import brier, calibration_loss, log_loss


@dataclass(frozen=True)
class Measure:
    """A named measure, as a function of counts.

    Attributes
    ----------
    name : str
        If it ends with ``_loss``, smaller is better.
    of : callable
        ``of(counts, threshold)``; only decisions use the threshold.
    needs : {"ranking", "decision", "probability"}
        The kind of counts: of scores, of scores with a threshold, or of probabilities of the positive class.
    """

    name: str
    of: Callable[[ScoreCounts, float], float]
    needs: Literal["ranking", "decision", "probability"]

    @property
    def sign(self) -> int:
        """1 if larger is better, else -1."""
        return -1 if self.name.endswith("_loss") else 1


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("auc", lambda counts, threshold: auc(counts), "ranking"),
        Measure("average_precision", lambda counts, threshold: average_precision(counts), "ranking"),
        Measure("g_mean", lambda counts, threshold: g_mean(confusion(counts, threshold)), "decision"),
        Measure(
            "balanced_accuracy", lambda counts, threshold: balanced_accuracy(confusion(counts, threshold)), "decision"
        ),
        Measure("brier_loss", lambda counts, threshold: brier(counts), "probability"),
        Measure("log_loss", lambda counts, threshold: log_loss(counts), "probability"),
        Measure("calibration_loss", lambda counts, threshold: calibration_loss(counts), "probability"),
    )
}


def find_measure(name: str) -> Measure:
    """Return the measure of this name.

    Raises
    ------
    InputError
        If there is no such measure.
    """
    if name not in MEASURES:
        raise unknown("metric", name, MEASURES)
    return MEASURES[name]
