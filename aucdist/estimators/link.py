"""Class probabilities by a link function: the generalised extreme value distribution for rare events, and the usual ones."""

import itertools
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.estimators.fitting import FitResult
from aucdist.estimators.linear import LinearClassifier
from aucdist.estimators.monotone import Directions
from aucdist.estimators.scores import separates
from aucdist.papers.gev import Gradient, Lipschitz, Newton
from aucdist.papers.gev.problem import LinkRound
from aucdist.papers.gev.shape import bayes_shape, map_shape
from aucdist.parameters import PRIOR, SWITCH, Number, OneOf, above_0, count, keyword_parameters
from aucdist.probability.links import LINKS, LOSSES, Link, LinkLoss, LinkMap, check_shape
from aucdist.solvers.base import Round, Solution, solver_table

MAX_XI = 0.99
"""The largest shape that is tried with the calibrated loss, which needs a shape below 1."""
MAX_SHAPE_ROUNDS = 200
LAM = 1e-3
"""The default `lam` of balanced classes."""


def balance(weight_pos: float, weight_neg: float) -> float:
    """Return 4 p (1 - p), where p is the share of positives. It is 1 for balanced classes, and small if one class is rare."""
    share = weight_pos / (weight_pos + weight_neg)
    return 4.0 * share * (1.0 - share)


class SeparationWarning(UserWarning):
    """Warns that the training rows are separable, so that `lam` alone decides how close probabilities are to 0 and 1."""


@keyword_parameters(
    lam=above_0(optional=True),
    prior=PRIOR,
    link=OneOf(LINKS),
    loss=OneOf(LOSSES),
    xi=Number("at least -1", lambda v: not np.isnan(v), words=("map", "bayes"), optional=True),
    shape_rounds=count(optional=True),
    shape_samples=count(40, optional=True),
    fit_intercept=SWITCH,
    penalise_intercept=SWITCH,
    monotone=Directions(),
)
class LinkClassifier(LinearClassifier):
    """A generalised linear model for class probabilities: P(y = 1 | x) = g(w.x + b).

    Minimises ``mean loss of the rows + lam/2 |w|^2``, after Fu and Liu (2018). The certificate is a bound on how far the
    objective exceeds its minimum. The link ``gev`` has a shape parameter xi, which makes g asymmetric: it approaches 0
    and 1 at different rates, as the paper proposes for a rare positive class. The shape can be chosen from the data. Start
    with ``logit``, and compare ``gev`` with it.

    Parameters
    ----------
    link : {"gev", "logit", "probit", "cloglog"}, default="gev"
        The function g:

        - ``gev``: ``exp(-(1 + xi u) ** (-1 / xi))``, which is ``exp(-exp(-u))`` at xi = 0.
        - ``logit``: ``1 / (1 + exp(-u))``.
        - ``probit``: the normal distribution function.
        - ``cloglog``: ``1 - exp(-exp(u))``.
    loss : {"calibrated", "likelihood"}, default="calibrated"
        ``calibrated`` is convex for every link. ``likelihood`` is minus the log-likelihood. It is convex except for ``gev`` with
        xi > 0, where the fit ends at a stationary point. For ``logit``, both losses are the same.
    xi : float, "map", "bayes" or None, default=None
        The shape of ``gev``, at least -1, and below 1 with the calibrated loss. None and ``"map"`` choose the mode of its
        posterior. ``"bayes"`` is empirical Bayes by Metropolis-Hastings chains, for small data. Both have priors of width 1 on
        the weights, so standardise the features first.
    lam : float or None, default=None
        The regularisation strength (scikit-learn's `alpha`). None means ``1e-3 * 4 p (1 - p)``, where p is the share of
        positives: 1e-3 for balanced classes and 4e-6 for one positive in a thousand. The curvature of the mean loss is
        about p (1 - p) for a rare class, so a fixed `lam` would flatten its probabilities. The paper minimises a
        sum over the rows instead of a mean, so its lambda is n_samples * lam.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    penalise_intercept : bool, default=False
        Whether to penalise the intercept, as the paper does. It also decides whether the intercept has a prior when xi is
        chosen.
    monotone : mapping, "auto" or None, default=None
        Only for the solver ``newton``. Features in which the score must rise or fall, such as ``{"age": "increasing", 3:
        "decreasing"}``, by name or position. With ``"auto"``, each feature gets the direction of its weight in a linear model,
        if five fits, each without a fifth of the rows, agree on it. This works without a feature map, and with ``"bins"`` or
        ``"leaves"``. The shape ``xi`` is chosen without the directions.
    features : str, dict, map or None, default=None
        A feature map that replaces the features: ``"bins"``, ``"nystroem"``, ``"leaves"``, a dict such as
        ``{"map": "bins", "interactions": 20}``, or a transformer of `aucdist.maps`. It is fitted to the training rows, and the
        weights belong to its basis functions. The certificate holds for the map as it is: it does not compare other edges,
        landmarks or trees. With ``"auto"``, cross-validation within the training rows chooses the map by the AUC, or by another
        metric: ``{"map": "auto", "metric": "average_precision"}``. `lam` is chosen as well if it has its default value. The
        page "How auto chooses" of the documentation lists the candidates. Scale the features first.
    solver : str, dict or Solver, default="newton"
        Use ``newton``, which is Newton's method and takes about a dozen rounds. ``lipschitz`` is the method of the paper, whose
        steps all use one fixed matrix. Its rounds are cheaper, but there are many of them if positives are rare. It does not work
        for the likelihood of ``gev`` and ``cloglog``, whose curvature has no bound. ``gradient`` is steepest descent with a
        bisection. ``{"name": "lipschitz", "momentum": False}`` or ``Lipschitz(momentum=False)`` takes the steps as published. The
        classes are in `aucdist.papers.gev`.
    tol : float, default=1e-6
        The fit ends when the relative gap, ``(primal - dual) / primal`` with the largest possible rounding errors, is at most
        `tol`. If the loss is not convex, there is no lower bound, and the fit ends when the gradient is short enough.
    max_passes : int, default=1000
        The fit ends with a ConvergenceWarning after this many passes over the data. One pass computes the scores of all rows and
        a gradient.
    warm_start : bool, default=False
        Whether to start from the weights of the last fit.
    shape_rounds : int or None, default=None
        With ``xi="map"``, the largest number of rounds; None means until the shape no longer changes. With ``xi="bayes"``, the
        number of rounds of EM; None means 10.
    shape_samples : int or None, default=None
        With ``xi="bayes"``, the number of samples in the first round; None means 10,000. It grows to twice this number in the
        last round.
    random_state : int, RandomState or None, default=None
        The seed of the chains of ``xi="bayes"``.
    prior : float or None, default=None
        The share of positives among future rows, if it differs from that of the training rows, as after undersampling. The
        odds of `predict_proba` are corrected for it.
    n_jobs : int or None, default=None
        The number of threads of a fit to arrays: None means one, and -1 one for each core. It does not change the
        result. Several classes are fitted in parallel. A fit of two classes uses several threads if there are at least
        200,000 rows. The number of blocks depends only on the number of rows.
    verbose : int, default=0
        With 1, `fit` prints a line for the rounds 1 to 10, 20, 30, ..., 100, 200, ... and for the last one. With 2, it
        prints a line for every round.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_weights) or (n_classes, n_weights), float64
        The weights of the encoded features, or of the basis functions of the feature map.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
        The intercept b. `decision_function` returns ``w.x + b - u``, where u is the value with ``g(u) = 1/2``, so a
        row is predicted positive if its probability is above one half.
    classes_ : ndarray of shape (n_classes,)
        The class labels. With two classes, the second one is the positive one.
    certificate_ : Certificate
        How close the objective is to its minimum: ``primal``, ``dual``, ``relative_gap``, ``status``, ``rounding`` and
        ``slack``. The page "The certificate" of the documentation explains them.
    certificates_ : list of Certificate
        With several classes: the certificate of each class. `certificate_` does not exist then.
    estimators_ : list
        With several classes: the model of each class against the rest.
    probability_ : LinkMap
        The map from `decision_function` to probabilities.
    monotone_ : ndarray of shape (n_encoded_features,), int8
        With `monotone`: +1, -1, or 0 for an encoded feature without a direction.
    lam_ : float
        The regularisation strength that the fit used.
    xi_ : float
        The shape of ``gev``.
    xi_trace_ : DataFrame
        If xi was chosen, one row for each round. ``"map"`` has the columns round, xi and log_posterior. ``"bayes"`` has
        round, xi, log_likelihood, acceptance (the share of accepted steps) and effective_samples (of xi).
    gradient_norm_ : float
        The length of the gradient of the objective at the weights.
    threshold_ : float
        The threshold on the scale of `decision_function`. It is always 0, also after `set_threshold`, which shifts the
        scores.
    n_passes_ : int
        The number of passes of the fit.
    history_ : DataFrame
        One row for each round, with the columns round, passes, seconds (since the start of the fit), primal, dual and
        relative_gap. It does not include the choice of xi.
    feature_map_ : FittedMap
        The fitted map, if `features` is given.
    chosen_ : dict
        With ``features="auto"``: the chosen settings, such as ``{"features": {"map": "leaves"}, "lam": 0.1}``.
    n_features_in_ : int
        The number of columns of X in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The column names of X. Defined only if X has column names.
    categories_ : dict of str to tuple of str
        If X has columns of categories or strings: the values of each such column.
    feature_names_out_ : ndarray of shape (n_encoded_features,)
        If X has columns of categories or strings: the names of the encoded features, with a 0/1 feature for each value. Without
        such columns, the encoded features are the columns of X.

    See Also
    --------
    PairwiseHingeClassifier : A ranking, with probabilities by `calibration`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist import LinkClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinkClassifier(lam=1e-2).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    >>> model.certificate_.relative_gap <= 1e-6
    True
    """

    solvers = solver_table(Newton, Lipschitz, Gradient)

    link: str = "gev"
    loss: str = "calibrated"
    lam: float | None = None  # type: ignore[assignment]
    solver: Any = "newton"
    xi: float | str | None = None
    fit_intercept: bool = True
    penalise_intercept: bool = False
    tol: float = 1e-6
    prior: float | None = None
    shape_rounds: int | None = None
    shape_samples: int | None = None
    monotone: Any = None
    _has_probabilities = True

    def _check_combination(self) -> None:
        super()._check_combination()
        if self.xi is not None and self.link != "gev":
            raise InputError(f"xi is {self.xi!r}, but only link 'gev' has a shape: set xi=None or link='gev'")
        if isinstance(self.xi, numbers.Real):
            check_shape(float(self.xi))
            self.loss_at(float(self.xi))  # raises an error for a shape that the loss cannot have
        method = self._shape_method()
        if self.shape_rounds is not None and method is None:
            raise InputError("shape_rounds applies only to xi='map' and xi='bayes': set shape_rounds=None")
        if self.shape_samples is not None and method != "bayes":
            raise InputError("shape_samples applies only to xi='bayes': set shape_samples=None")
        if self.penalise_intercept and not self.fit_intercept:
            raise InputError(
                "penalise_intercept is True, but fit_intercept is False: set fit_intercept=True or penalise_intercept=False"
            )

    def _rounds(self, blocks: Blocks, start: Any) -> Iterator[Round]:
        self.lam_ = LAM * balance(blocks.weight_pos, blocks.weight_neg) if self.lam is None else self.lam
        shape, method = None, self._shape_method()
        if method is not None:
            shape_options: dict[str, Any] = self._intercept_options() | {"most_xi": self._most_xi}
            most_rounds = self.shape_rounds if method == "map" and self.shape_rounds is not None else MAX_SHAPE_ROUNDS
            estimates = list(itertools.islice(map_shape(blocks, **shape_options), most_rounds))
            if method == "bayes":
                limits = {"n_rounds": self.shape_rounds, "n_samples": self.shape_samples}
                shape_options |= {name: value for name, value in limits.items() if value is not None}
                seed = int(check_random_state(self.random_state).randint(2**31))
                mode = estimates[-1]
                estimates = list(bayes_shape(blocks, np.append(mode.theta, mode.xi), seed=seed, **shape_options))
            self.xi_trace_ = pd.DataFrame(
                {"round": number, "xi": estimate.xi, **estimate.measures}
                for number, estimate in enumerate(estimates, start=1)
            )
            shape = estimates[-1]
        if start is not None and not self.fit_intercept:
            start = np.append(start, 0.0)
        elif start is None and shape is not None:
            start = shape.theta
        if self.link == "gev":
            self.xi_ = float(self.xi or 0.0) if shape is None else shape.xi  # Without an estimate, xi is a number.
        loss = self._fitted_loss()
        options = self._solver_options() | self._intercept_options() | {"loss": loss}
        if not loss.convex:
            options["gradient_tol"] = self.tol
        return self.resolved_solver.rounds(blocks, self.lam_, start, **options)

    def _fitted_loss(self) -> LinkLoss:
        """Return the loss with the shape that the fit used."""
        return self.loss_at(getattr(self, "xi_", 0.0))

    def loss_at(self, xi: float) -> LinkLoss:
        """Return the loss of the link with this shape.

        Parameters
        ----------
        xi : float
            The shape of the GEV link. Other links ignore it.

        Returns
        -------
        LinkLoss
        """
        return LinkLoss(Link(self.link, xi), self.loss)

    def _shape_method(self) -> str | None:
        """Return the name of the method that estimates the shape, or None if the shape is given or the link has none."""
        if self.link != "gev" or isinstance(self.xi, numbers.Real):
            return None
        return "map" if self.xi is None else str(self.xi)

    @property
    def _most_xi(self) -> float:
        """The largest shape that is tried."""
        return MAX_XI if self.loss == "calibrated" else np.inf

    def _intercept_options(self) -> dict[str, bool]:
        return {"fit_intercept": bool(self.fit_intercept), "penalise_intercept": bool(self.penalise_intercept)}

    def _set_weights(self, solution: Solution, blocks: Blocks, intercept_shift: float) -> FitResult:
        last, link = solution.last, self._fitted_loss().link
        assert isinstance(last, LinkRound)
        self.gradient_norm_, intercept = last.gradient_norm, last.intercept - intercept_shift
        self.coef_, self.intercept_ = solution.w[np.newaxis, :], np.array([intercept])
        whole = LinkMap(1.0, link, 1.0, intercept)
        whole = whole.corrected(blocks.weight_pos / (blocks.weight_pos + blocks.weight_neg), self.prior)
        # The threshold is the score at which both classes have the same corrected probability.
        threshold = link.score(1.0 / (1.0 + whole.odds)) - intercept
        self._decision_intercept = 0.0 - threshold
        self.probability_: LinkMap = whole.shifted(threshold)
        warned = list[Warning]()
        if self._shape_method() is not None and self.xi_ >= self._most_xi:
            at_most = UserWarning(
                f"the shape xi of the link gev reached its largest value, {self._most_xi}. Beyond it, the calibrated loss has no "
                "minimum. Use link='logit' unless you need this link, or loss='likelihood', for which xi has no such limit"
            )
            warned.append(at_most)
        if separates(blocks, self.coef_[0]):
            separable = SeparationWarning(
                "the training rows are linearly separable, so `lam` alone decides how near to 0 and 1 the probabilities are "
                f"(lam={self.lam_:g}). Check whether a feature gives the label away, and choose lam by cross-validation"
            )
            warned.append(separable)
        return FitResult(warnings=warned)

    def _set_intercept(self, intercept: float) -> None:
        # The intercept of the link belongs to the probabilities, which do not change.
        self._decision_intercept = intercept

    @property
    def decision_intercept(self) -> float:
        """What `decision_function` adds to X w."""
        return self._decision_intercept
