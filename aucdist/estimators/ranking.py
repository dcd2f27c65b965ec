"""Estimators that rank: a threshold set after the fit, and probabilities by calibration."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.estimators.calibration import CALIBRATIONS, calibrated
from aucdist.estimators.linear import LinearClassifier
from aucdist.estimators.scores import count_scores
from aucdist.metrics.counts import ScoreCounts
from aucdist.metrics.decisions import best_threshold
from aucdist.metrics.ranking import auc
from aucdist.parameters import Constraints, OneOf, share
from aucdist.solvers.base import Solution


@dataclass(kw_only=True, eq=False, repr=False)
class RankingClassifier(LinearClassifier):
    """A linear classifier whose objective orders rows, and leaves threshold and probabilities open.

    Scores are shifted so that 0 is where G-mean on the training rows is largest.
    """

    _parameter_constraints: ClassVar[Constraints] = {
        **LinearClassifier._parameter_constraints,
        "calibration": OneOf(CALIBRATIONS, optional=True),
        "prior": share(optional=True),
    }
    calibration: str | None = None
    prior: float | None = None

    @property
    def _has_probabilities(self) -> bool:
        return self.calibration is not None

    @property
    def ignores_zero_weight(self) -> bool:
        """Whether a fit takes a row of weight 0 for absent, to the last bit; calibration copies rows of its own folds."""
        return super().ignores_zero_weight and self.calibration is None

    def _check_own_parameters(self) -> None:
        super()._check_own_parameters()
        if self.prior is not None and self.calibration is None:
            raise InputError("prior applies to probabilities: calibration must not be None")

    def _set_fitted(self, solution: Solution, blocks: Blocks) -> ScoreCounts | None:
        """Set the fitted attributes; return the counts of the scores, of which the threshold is one."""
        self._set_certificate(solution)
        self.coef_ = solution.w[np.newaxis, :]
        counts = count_scores(blocks, solution.w)
        self.intercept_, self._auc = np.array([0.0 - best_threshold(counts)]), auc(counts)
        if self.calibration is not None:
            self.probability_, unseen = calibrated(self, blocks)
            if hasattr(self, "_unseen"):
                self._unseen = unseen
        return counts

    def _training_auc(self, blocks: Blocks) -> float:
        return self._auc
