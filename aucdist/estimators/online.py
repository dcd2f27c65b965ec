"""`partial_fit`: learning from rows that come batch after batch, by the solvers that see each row once."""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.estimators.ranking import RankingClassifier
from aucdist.estimators.tables import checked_rows
from aucdist.estimators.validation import labelled_block, two_classes


class OnlineClassifier(RankingClassifier):
    """A linear classifier some of whose solvers can be fed batch by batch: those that can `learn`."""

    @available_if(lambda model: model._is_online)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the rows of a batch in their order, then wait for more.

        There is no certificate, for nobody holds all pairs. After a `fit` it goes on from its weights, but remembers none of its
        rows.

        Parameters
        ----------
        X : array-like, sparse matrix or array, or DataFrame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            One class alone is legal.
        classes : array-like of shape (2,)
            Both labels, the larger one positive. Needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self

        Raises
        ------
        InputError
            A ValueError: where the first call lacks `classes`, a label is not one of them, or the solver lacks a parameter.
        """
        self.check_parameters()
        if self.calibration is not None:
            raise InputError("calibration needs all rows at once: take `fit`, or calibration=None with partial_fit")
        if self.features is not None:
            raise InputError("features needs all rows at once: take `fit`, or map each batch before partial_fit")
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise InputError("the first call of partial_fit needs `classes`: both labels, the larger one positive")
        block = self._batch(X, y, sample_weight, classes, first=first)
        stream = getattr(self, "stream_", None)
        if stream is None or not np.array_equal(stream.w, self.coef_[0]):  # none yet, or a `fit` came between
            stream = self.coef_[0] if hasattr(self, "coef_") else np.zeros(block.n_features)
        solver = self.resolved_solver
        seed = int(check_random_state(self.random_state).randint(2**31)) if solver.random else 0
        self.stream_, threshold = solver.learn(stream, block, self.lam, seed)
        self.coef_ = self.stream_.w[np.newaxis, :]
        if threshold is not None or not hasattr(self, "intercept_"):
            self.intercept_ = np.array([0.0 - (threshold or 0.0)])
        for stale in ("certificate_", "_records", "n_passes_"):  # of a `fit` before
            self.__dict__.pop(stale, None)
        return self

    def _batch(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool) -> Block:
        """Return the rows of a batch, checked against `classes` and against the batches before."""
        X, y = checked_rows(self, X, y, reset=first, declared=True)
        known = self.classes_ if classes is None else two_classes(np.asarray(classes))
        if not first and not np.array_equal(known, self.classes_):
            raise InputError(f"classes are {known}, but the first call had {self.classes_}")
        strange = ~np.isin(y, known)
        if strange.any():
            raise InputError(f"label {y[strange][0].item()!r} is not one of the classes {known}")
        self.classes_ = known
        return labelled_block(X, np.where(y == known[1], 1, -1), sample_weight)
