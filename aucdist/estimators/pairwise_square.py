"""The pairwise square: least squares over all positive-negative pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from aucdist.errors import InputError
from aucdist.estimators.conditioning import shifted
from aucdist.estimators.monotone import Directions
from aucdist.estimators.pair_options import GROUP_CONSTRAINTS
from aucdist.estimators.ranking import RankingClassifier
from aucdist.papers.tpauc import OPAUC, SVRG, TPAUC, Exact
from aucdist.papers.tpauc.exact import exact_path
from aucdist.parameters import Constraints
from aucdist.solvers.base import Solver, solver_table
from aucdist.solvers.pairs.groups import pair_groups


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseSquareClassifier(RankingClassifier):
    """Linear ranking by the mean pairwise square over all positive-negative pairs.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of (1 - w.(x_i - x_j))^2``, and states by how much at
    most the objective exceeds the best possible: by its gradient, as the objective is strongly convex. It is that of Luan &
    Gao (2018), their lambda being `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty. Standardised features: 1e-4 to 1 are worth trying.
    solver : str, dict or Solver, default="exact"
        ``exact``: the minimum itself; up to 1000 features by one reduction, beyond by conjugate gradients; deterministic.
        ``svrg``: variance-reduced stochastic gradients. ``tpauc``: two passes. ``opauc``: one pass. The last two take a fixed
        number of steps, and so may end above `tol`, with a ConvergenceWarning. A name takes the
        solver's defaults; parameters go with it, as in ``{"name": "tpauc", "epochs": 5}`` or ``TPAUC(epochs=5)``: see
        `aucdist.papers.tpauc`.
    random_state : int, RandomState or None, default=None
        Of the rows drawn by ``svrg``, their order with ``tpauc`` and ``opauc``, and the sketch of ``opauc``.
    warm_start : bool, default=False
        Start from the last fit's weights. The closed form of ``exact`` needs no start.
    group_weight : {"pairs", "groups"} or None, default=None
        ``exact``, up to 1000 weights. With `groups` in `fit`: the mean goes over all pairs ("pairs", the default), or each group
        counts the same, however many pairs it has ("groups").
    grade_weight : {"difference", "one"} or None, default=None
        ``exact``, up to 1000 weights. The labels are grades, the larger the more relevant, and a pair is any two rows (of one
        group) with different ones. It weighs their difference, or one. See `aucdist.solvers.pairs.groups`.
    monotone : mapping, "auto" or None, default=None
        ``exact``, up to 1000 weights: features in which the score must rise or fall, such as ``{"age": "increasing", 3:
        "decreasing"}``, by name or position; ``"auto"`` gives each feature the direction of a straight line, if five folds of the
        rows agree on it. With no feature map, and with ``"bins"`` or ``"leaves"``.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Gives the model `predict_proba`, by a map from scores to probabilities that is fitted to scores of rows held out, see
        `aucdist.estimators.calibration`; that takes five fits more. ``gev``, ``logit``: a link with slope and offset, the first
        with a shape of its own. ``isotonic``: any rising map.
    prior : float or None, default=None
        With `calibration`: the share of positives among the rows to come, where it is not that among the training rows, as after
        undersampling.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal``, is at most this.
    max_passes : int, default=1000
        The fit ends after so many passes over the data, one being X w and X'c, with a ConvergenceWarning.
    features : str, dict, map or None, default=None
        A feature map that is fitted to the training rows, whose basis functions the weights are of: ``"bins"``, ``"nystroem"``,
        ``"leaves"``, a dict such as ``{"map": "bins", "pairs": 20}``, or a transformer of `aucdist.maps`. Edges, landmarks and
        trees are given to the certificate, not part of what it proves. ``"auto"``: cross-validation within the training rows
        chooses the map and `lam`, as `aucdist.search.auto` says; scale the features first.
    verbose : int, default=0
        1: `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and the last; 2: for every round.
    n_jobs : int or None, default=None
        Threads of a fit to arrays: None is one, -1 one for each core; they change no bit. Several classes are fitted side by
        side; one class with the default solver, where there are at least 200 000 rows: their number alone decides into how
        many blocks these are cut.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second is the positive one. With `grade_weight` -1 and 1: the lowest grade, and those above it.
    monotone_ : ndarray of shape (n_features_in_,), int8
        With `monotone`: +1, -1, or 0 for any direction.
    intercept_ : ndarray of shape (1,), float64
        Chosen so that G-mean on the training rows is largest where rows with scores above 0 are predicted positive.
    probability_ : ProbabilityMap
        With `calibration`: from `decision_function` to probabilities.
    coef_ : ndarray of shape (1, n_features), float64
    certificate_ : Certificate
        ``primal, dual, relative_gap, status``.
    history_ : DataFrame
        A row per round: round, passes, seconds, primal, dual, relative_gap.
    n_passes_ : int
    threshold_ : float
        On the scale of `decision_function`: 0, always, also after `set_threshold`, which moves the scores.
    feature_map_ : FittedMap
        With `features`.
    chosen_ : dict
        With ``features="auto"``: what was chosen, such as ``{"features": {"map": "leaves"}, "lam": 0.1}``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.
    categories_ : dict of str to tuple of str
    feature_names_out_ : ndarray of shape (n_encoded_features,)
        Where X has columns of categories or texts: the values of each, and the names of all features that the rows have with a
        0/1 feature for each value. Weights, `monotone_` and `explain` are of these features.

    Notes
    -----
    A ranking score is not a probability: ``predict_proba`` needs `calibration`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import PairwiseSquareClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PairwiseSquareClassifier(lam=1e-3).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-9
    True
    """

    of_pairs = True
    solvers: ClassVar[dict[str, type[Solver]]] = solver_table(Exact, SVRG, TPAUC, OPAUC)
    _parameter_constraints: ClassVar[Constraints] = {
        **RankingClassifier._parameter_constraints,
        "monotone": Directions(),
        **GROUP_CONSTRAINTS,
    }

    solver: Any = "exact"
    group_weight: str | None = None
    grade_weight: str | None = None
    monotone: Any = None

    def path(self, X: Any, y: Any = None, *, lams: Sequence[float], sample_weight: Any = None) -> np.ndarray:
        """Return the minimum's weights for several lam, at the cost of about one: all come from the same moments.

        Parameters
        ----------
        X, y
            As in `fit`; at most 1000 features.
        lams : sequence of float
            Each above 0. The parameter `lam` has no effect.
        sample_weight
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_lams, n_features), float64
            In the order of `lams`.

        Raises
        ------
        InputError
            A ValueError: for another solver than ``exact``, a lam outside its range, or data that cannot be used.
        """
        solver = self.resolved_solver
        if not isinstance(solver, Exact):
            raise InputError(f"path applies to solver exact, not to {solver.name!r}")
        if self.features is not None:
            raise InputError("path returns weights alone, without their feature map: transform X by the map first")
        if self.monotone is not None:
            raise InputError(
                "path has the closed form, which has no directions of features (monotone): fit one lam at a time"
            )
        for lam in lams:
            clone(self).set_params(lam=lam).check_parameters()
        blocks, _ = shifted(clone(self)._validated_blocks(X, y, sample_weight))
        groups = pair_groups(blocks, self.group_weight, self.grade_weight)
        return np.array([minimum.w for minimum in exact_path(blocks, lams, groups)]).reshape(
            len(lams), blocks.n_features
        )
