"""The pairwise square: least squares over all positive-negative pairs."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from aucdist.data.block import Block
from aucdist.errors import InputError
from aucdist.estimators.conditioning import shifted
from aucdist.estimators.monotone import Directions
from aucdist.estimators.online import OnlineClassifier, finite
from aucdist.estimators.parameters import Constraints, OneOf, above_0, count
from aucdist.objectives.pairwise_square import FACTORS
from aucdist.solvers.base import Solver
from aucdist.solvers.square import opauc, tpauc
from aucdist.solvers.square.exact import exact, exact_path
from aucdist.solvers.square.svrg import svrg


def _learn_with_means(model: Any, stream: Any, block: Block) -> tuple[tpauc.TwoPassState, float]:
    """Learn from a batch by `aucdist.solvers.square.tpauc`."""
    stream = stream if isinstance(stream, tpauc.TwoPassState) else tpauc.tpauc_start(getattr(stream, "w", stream))
    factor = FACTORS[0] if model.factor is None else model.factor
    stream = tpauc.tpauc_update(stream, block, model.lam, eta=model.eta, factor=factor, class_means=model.class_means)
    return finite(stream, model.eta), stream.threshold


def _learn_with_covariances(model: Any, stream: Any, block: Block) -> tuple[opauc.OnePassState, float]:
    """Learn from a batch by `aucdist.solvers.square.opauc`."""
    if not isinstance(stream, opauc.OnePassState):
        stream = opauc.opauc_start(getattr(stream, "w", stream), model.rank, model._solver_options()["seed"])
    stream = opauc.opauc_update(stream, block, model.lam, eta=model.eta)
    return finite(stream, model.eta), stream.threshold


class PairwiseSquareClassifier(OnlineClassifier):
    """Linear ranking by the mean pairwise square over all positive-negative pairs.

    Minimises ``lam/2 |w|^2 + mean over pairs (i positive, j negative) of (1 - w.(x_i - x_j))^2``, and states by how much at
    most the objective exceeds the best possible: by its gradient, as the objective is strongly convex. It is that of Luan &
    Gao (2018), their lambda being `lam`.

    Parameters
    ----------
    lam : float, default=1e-3
        Weight of the penalty. Standardised features: 1e-4 to 1 are worth trying.
    solver : {"exact", "svrg", "tpauc", "opauc"}, default="exact"
        ``exact``: the minimum itself, see `aucdist.solvers.square.exact`; up to 1000 features by one reduction, beyond by
        conjugate gradients; deterministic. ``svrg``: variance-reduced stochastic gradients, `aucdist.solvers.square.svrg`.
        ``tpauc``: two passes, `aucdist.solvers.square.tpauc`. ``opauc``: one pass, `aucdist.solvers.square.opauc`. The
        last two take a fixed number of steps, and so may end above `tol`, with a ConvergenceWarning; they have
        `partial_fit`.
    tol : float, default=1e-3
        The fit ends when the relative gap, ``(primal - dual) / primal``, is at most this.
    max_passes : int, default=1000
        The fit ends after so many passes over the data, one being X w and X'c, with a ConvergenceWarning.
    random_state : int, RandomState or None, default=None
        Of the rows drawn by ``svrg``, their order with ``tpauc`` and ``opauc``, and the sketch of ``opauc``.
    warm_start : bool, default=False
        Start from the last fit's weights. The closed form of ``exact`` needs no start.
    eta : float or None, default=None
        ``tpauc``, ``opauc``: the steps' length. None takes the longest that is sure not to diverge, which is short; trying
        2^-10 to 2^2 on features scaled to [-1, 1] is what the papers do.
    epochs : int or None, default=None
        ``tpauc``, ``opauc``: how many times each row is taken; None is 1.
    factor : {"corrected", "print"} or None, default=None
        ``tpauc``: None and ``"corrected"`` give the rows' own terms the factor that makes their mean the objective; ``"print"``
        gives them the one printed, for comparison.
    class_means : array-like of shape (2, n_features) or None, default=None
        ``tpauc``: the class means to step with, the negative class first. None takes them in a first pass, and in `partial_fit`
        those of the rows so far.
    rank : int, "full" or None, default=None
        ``opauc``: the rank to which covariances are sketched, or whole ones; None is whole up to 1000 features, and 50 beyond.
    calibration : {"gev", "logit", "isotonic"} or None, default=None
        Gives the model `predict_proba`, by a map from scores to probabilities that is fitted to scores of rows held out, see
        `aucdist.estimators.calibration`; that takes five fits more. ``gev``, ``logit``: a link with slope and offset, the first
        with a shape of its own. ``isotonic``: any rising map.
    prior : float or None, default=None
        With `calibration`: the share of positives among the rows to come, where it is not that among the training rows, as after
        undersampling.
    features : str, dict, map or None, default=None
        A feature map that is fitted to the training rows, whose basis functions the weights are of: ``"bins"``, ``"nystroem"``,
        ``"leaves"``, a dict such as ``{"map": "bins", "pairs": 20}``, or a transformer of `aucdist.maps`. Edges, landmarks and
        trees are given to the certificate, not part of what it proves.
    monotone : mapping, "auto" or None, default=None
        ``exact``, up to 1000 weights: features in which the score must rise or fall, such as ``{"age": "increasing", 3:
        "decreasing"}``, by name or position; ``"auto"`` gives each feature the direction of a straight line. With no feature map,
        and with ``"bins"``.
    verbose : int, default=0
        1: `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and the last; 2: for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), float64
    intercept_ : ndarray of shape (1,), float64
        Minus the threshold.
    threshold_ : float
        Where G-mean on the training rows is largest; after `partial_fit` midway between the class means' scores.
    classes_ : ndarray of shape (2,)
        The second is the positive one.
    certificate_ : Certificate
        ``primal, dual, relative_gap, status``.
    history_ : DataFrame
        A row per round: round, passes, seconds, primal, dual, relative_gap.
    probability_ : ProbabilityMap
        With `calibration`: from `decision_function` to probabilities.
    n_passes_ : int
    feature_map_ : FittedMap
        With `features`.
    monotone_ : ndarray of shape (n_features_in_,), int8
        With `monotone`: +1, -1, or 0 for any direction.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.
    stream_ : object
        After `partial_fit`: what is remembered of the rows so far.

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
    solvers: ClassVar[dict[str, Solver]] = {
        "exact": Solver(exact, takes_codes=True, signs=True),
        "svrg": Solver(svrg, random=True),
        "tpauc": Solver(
            tpauc.tpauc, ("eta", "epochs", "factor", "class_means"), random=True, learn=_learn_with_means
        ),
        "opauc": Solver(opauc.opauc, ("eta", "epochs", "rank"), random=True, learn=_learn_with_covariances),
    }  # fmt: skip
    _parameter_constraints: ClassVar[Constraints] = {
        **OnlineClassifier._parameter_constraints,
        "eta": above_0(optional=True),
        "epochs": count(optional=True),
        "factor": OneOf(FACTORS, optional=True),
        "rank": count(words=("full",), optional=True),
        "monotone": Directions(),
    }

    def __init__(
        self,
        *,
        lam: float = 1e-3,
        solver: str = "exact",
        tol: float = 1e-3,
        max_passes: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        eta: float | None = None,
        epochs: int | None = None,
        factor: str | None = None,
        class_means: Any = None,
        rank: int | str | None = None,
        calibration: str | None = None,
        prior: float | None = None,
        features: Any = None,
        monotone: Any = None,
        verbose: int = 0,
    ):
        super().__init__(
            lam=lam, solver=solver, tol=tol, max_passes=max_passes, random_state=random_state, warm_start=warm_start
        )
        self.features = features
        self.monotone = monotone
        self.verbose = verbose
        self.calibration = calibration
        self.prior = prior
        self.eta = eta
        self.epochs = epochs
        self.factor = factor
        self.class_means = class_means
        self.rank = rank

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
        if self.solvers[self.solver].rounds is not exact:
            raise InputError(f"path applies to solver exact, not to {self.solver!r}")
        if self.features is not None:
            raise InputError("path returns weights alone, without their feature map: transform X by the map first")
        if self.monotone is not None:
            raise InputError(
                "path has the closed form, which has no directions of features (monotone): fit one lam at a time"
            )
        for lam in lams:
            clone(self).set_params(lam=lam).check_parameters()
        blocks, _ = shifted(clone(self)._validated_blocks(X, y, sample_weight))
        return np.array([found.w for found in exact_path(blocks, lams)]).reshape(len(lams), blocks.n_features)
