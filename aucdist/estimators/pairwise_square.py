"""The pairwise square: least squares over all positive-negative pairs."""

import numbers
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from aucdist.data.block import Block
from aucdist.errors import InputError, unknown
from aucdist.estimators.base import _check_number
from aucdist.estimators.conditioning import shifted
from aucdist.estimators.online import OnlineClassifier
from aucdist.objectives.pairwise_square import FACTORS
from aucdist.solvers.base import Solver
from aucdist.solvers.square import opauc, tpauc
from aucdist.solvers.square.exact import exact, exact_path
from aucdist.solvers.square.svrg import svrg


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
        The fit ends when ``(primal - dual) / primal`` is at most this.
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
        "exact": Solver(exact),
        "svrg": Solver(svrg, random=True),
        "tpauc": Solver(tpauc.tpauc, options=("eta", "epochs", "factor", "class_means"), random=True),
        "opauc": Solver(opauc.opauc, options=("eta", "epochs", "rank"), random=True),
    }
    online_solvers = ("tpauc", "opauc")

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
    ):
        super().__init__(
            lam=lam, solver=solver, tol=tol, max_passes=max_passes, random_state=random_state, warm_start=warm_start
        )
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
        X, y, sample_weight
            As in `fit`; at most 1000 features.
        lams : sequence of float
            Each above 0. The parameter `lam` plays no part.

        Returns
        -------
        ndarray of shape (n_lams, n_features), float64
            In the order of `lams`.

        Raises
        ------
        InputError
            A ValueError: for another solver than ``exact``, a lam outside its range, or data that cannot be used.
        """
        if self.solver != "exact":
            raise InputError(f"path applies to solver exact, not to {self.solver!r}")
        for lam in lams:
            clone(self).set_params(lam=lam).check_parameters()
        blocks, _ = shifted(clone(self)._prepare(X, y, sample_weight))
        return np.array([found.w for found in exact_path(blocks, lams)]).reshape(len(lams), blocks.n_features)

    def check_parameters(self) -> None:
        """Check every parameter, as `fit` does first."""
        super().check_parameters()
        check_steps(self.eta, self.epochs)
        if self.factor is not None and self.factor not in FACTORS:
            raise unknown("factor", self.factor, FACTORS)
        if isinstance(self.rank, str):
            if self.rank != "full":
                raise InputError(f"rank is {self.rank!r}; an integer at least 1, 'full' or None is needed")
        elif self.rank is not None:
            _check_number("rank", self.rank, numbers.Integral, "at least 1", lambda v: v >= 1)

    def _learn(self, stream: Any, block: Block) -> tuple[tpauc.TwoPassState | opauc.OnePassState, float]:
        learnt = self._tpauc(stream, block) if self.solver == "tpauc" else self._opauc(stream, block)
        return finite(learnt, self.eta), learnt.threshold

    def _tpauc(self, stream: Any, block: Block) -> tpauc.TwoPassState:
        stream = stream if isinstance(stream, tpauc.TwoPassState) else tpauc.tpauc_start(getattr(stream, "w", stream))
        factor = FACTORS[0] if self.factor is None else self.factor
        return tpauc.tpauc_update(stream, block, self.lam, eta=self.eta, factor=factor, class_means=self.class_means)

    def _opauc(self, stream: Any, block: Block) -> opauc.OnePassState:
        if not isinstance(stream, opauc.OnePassState):
            stream = opauc.opauc_start(getattr(stream, "w", stream), self.rank, self._solver_options()["seed"])
        return opauc.opauc_update(stream, block, self.lam, eta=self.eta)


def finite(stream: Any, eta: float | None) -> Any:
    """Return what is remembered after a batch, unless its weights are not finite.

    Raises
    ------
    InputError
        If the steps have diverged.
    """
    if not np.isfinite(stream.w).all():
        raise InputError(f"the steps diverged in this batch, so coef_ stays what it was; eta={eta} is too long")
    return stream


def check_steps(eta: float | None, epochs: int | None) -> None:
    """Check the parameters that all online solvers share."""
    if eta is not None:
        _check_number("eta", eta, numbers.Real, "above 0 and finite", lambda v: 0 < v < np.inf)
    if epochs is not None:
        _check_number("epochs", epochs, numbers.Integral, "at least 1", lambda v: v >= 1)
