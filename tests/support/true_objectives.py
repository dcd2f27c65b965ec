"""Objectives in extended precision, as sums over all pairs or rows, and a descent on them: no code is shared with the fits."""

from dataclasses import dataclass, fields

import numpy as np
from scipy.optimize import minimize

LONG = np.longdouble


def hinge(m):
    return np.maximum(1 - m, 0)


def square(m):
    return (1 - m) ** 2


def logistic(m):
    return np.logaddexp(0, -m)


def exponential(m):
    return np.exp(-m)


def ramp(m):
    inside = np.where(m < 0, 1 - (1 + m) ** 2 / 2, (1 - m) ** 2 / 2)
    return np.where(m <= -1, 1, np.where(m >= 1, 0, inside))


def smooth_hinge(m, width):
    t = 1 - m
    return np.where(t <= 0, 0, np.where(t >= width, t - width / 2, t * t / (2 * width)))


def smooth_hinge_slope(m, width):
    return -np.clip((1 - m) / width, 0, 1)


SLOPES = {
    square: lambda m: -2 * (1 - m),
    logistic: lambda m: -1 / (1 + np.exp(np.minimum(m, 700))),
    exponential: lambda m: -np.exp(-m),
}


@dataclass
class Objective:
    """A weighted sum of losses of margins ``Z v``, and a penalty ``quadratic . (v - centre)^2 + absolute . |v|``.

    The columns of the rows are shifted by `shift` in Z, exactly, and v has the intercept last where there is one.
    """

    Z: np.ndarray
    share: np.ndarray
    loss: object
    quadratic: np.ndarray
    absolute: np.ndarray
    centre: np.ndarray
    shift: np.ndarray
    intercept: bool

    def value(self, v):
        """Return the objective in extended precision."""
        v = v.astype(LONG)
        loss = (self.share * self.loss(self.Z @ v)).sum()
        return loss + (self.quadratic * (v - self.centre) ** 2).sum() + (self.absolute * np.abs(v)).sum()

    def of(self, coef, intercept):
        """Return the v of fitted weights."""
        v = coef.astype(LONG)
        return np.append(v, LONG(intercept) + v @ self.shift) if self.intercept else v

    bounds = None  # of the weights in a descent
    rows = None  # where the fits get others than those of the problem

    def smoothed_groups(self, u, size, width):
        """Return value and gradient of a penalty of groups of weights, smoothed, at u, whose weights are u / size."""
        return 0.0, 0.0

    def descended(self, start):
        """Return a v from a descent on the objective, a hinge smoothed less and less, all columns at one scale."""
        if self.loss is ramp:
            return start
        size = np.maximum(np.abs(self.Z).max(axis=0), LONG(1e-100))
        Z, share = (self.Z / size).astype(float), self.share.astype(float)
        quadratic, absolute = (self.quadratic / size**2).astype(float), (self.absolute / size).astype(float)
        centre, u = (self.centre * size).astype(float), (start.astype(LONG) * size).astype(float)
        best = start
        for width in (1e-1, 1e-3, 1e-5):

            def function(u, width=width):
                m = Z @ u
                hinged = self.loss is hinge
                loss = smooth_hinge(m, width) if hinged else self.loss(m)
                slope = smooth_hinge_slope(m, width) if hinged else SLOPES[self.loss](m)
                root = np.sqrt(u * u + width**2)
                away = u - centre
                of_groups, slopes = self.smoothed_groups(u, size, width)
                value = share @ loss + quadratic @ (away * away) + absolute @ root + of_groups
                return value, Z.T @ (share * slope) + 2 * quadratic * away + absolute * u / root + slopes

            with np.errstate(all="ignore"):
                u = minimize(function, u, jac=True, method="L-BFGS-B", bounds=self.bounds, options={"maxiter": 300}).x
            v = u.astype(LONG) / size
            if np.isfinite(v).all() and self.value(v) < self.value(best):
                best = v
        return best


@dataclass
class GroupObjective(Objective):
    """With ``lam sum of sqrt(size) |v_g|`` over groups of weights."""

    groups: np.ndarray = None
    lam: float = 0.0

    @property
    def strengths(self):
        return self.lam * np.sqrt(np.bincount(self.groups).astype(LONG))

    def value(self, v):
        lengths = [np.sqrt((v[self.groups == g].astype(LONG) ** 2).sum()) for g in range(len(self.strengths))]
        return super().value(v) + (self.strengths * np.array(lengths)).sum()

    def smoothed_groups(self, u, size, width):
        v, size, strengths = u / size.astype(float), size.astype(float), self.strengths.astype(float)
        roots = np.sqrt(np.bincount(self.groups, v * v) + (width * (1.0 / size).min()) ** 2)
        return strengths @ roots, (strengths / roots)[self.groups] * v / size


@dataclass
class TopObjective(Objective):
    """Over the pairs whose negatives have the highest scores at v, up to a weight: the one at its edge counts in part."""

    negatives: np.ndarray = None  # shifted: the order of the scores is the same
    weights: tuple = ()  # of the positives and of the negatives
    top_weight: float = 0.0

    def share_at(self, v):
        positive, negative = self.weights
        order = np.argsort(-(self.negatives @ v.astype(LONG)), kind="stable")
        before = np.concatenate([[LONG(0)], np.cumsum(negative[order])[:-1]])
        counts = np.empty_like(negative)
        counts[order] = np.clip(self.top_weight - before, 0, negative[order])
        return np.outer(positive, counts).ravel() / (positive.sum() * self.top_weight)

    def value(self, v):
        self.share = self.share_at(v)
        return super().value(v)

    def descended(self, start):
        """Return a v from a descent over the negatives that count at the start."""
        self.share = self.share_at(start)
        return super().descended(start)


def of_top(rows, part, *, l1=False):
    """Return the pairwise hinge over the highest-scoring part of the negatives."""
    whole, w = of_pairs(rows, hinge, l1=l1), rows.weights
    pos, neg = rows.y > 0, rows.y < 0
    X = rows.X.astype(LONG)
    of = {field.name: getattr(whole, field.name) for field in fields(whole)}
    return TopObjective(
        **of, negatives=(X - X[neg][0])[neg], weights=(w[pos], w[neg]), top_weight=LONG(part) * w[neg].sum()
    )


def of_pairs_in_groups(rows, groups):
    """Return the pairwise hinge with a penalty of groups of weights."""
    plain = of_pairs(rows, hinge)
    of = {field.name: getattr(plain, field.name) for field in fields(plain)} | {"quadratic": 0 * plain.quadratic}
    return GroupObjective(**of, groups=groups, lam=LONG(rows.lam))


def of_pairs(rows, loss, *, l1=False):
    """Return the objective over all pairs."""
    X, w = rows.X.astype(LONG), rows.weights
    pos, neg = rows.y > 0, rows.y < 0
    Z = (X[pos][:, None] - X[neg][None]).reshape(-1, X.shape[1])
    share = np.outer(w[pos], w[neg]).ravel()
    d = X.shape[1]
    zero, lam = np.zeros(d, LONG), np.full(d, LONG(rows.lam))
    quadratic, absolute = (zero, lam) if l1 else (lam / 2, zero)
    return Objective(Z, share / share.sum(), loss, quadratic, absolute, zero, zero, False)


def of_pairs_within(rows, loss, *, l1=False):
    """Return the objective over the pairs within groups, or of rows with grades: all rows of it, with `group` and `grade`."""
    X, w, values = rows.X.astype(LONG), rows.weights, (rows.y if rows.grade is None else rows.grade).astype(LONG)
    first, second = np.nonzero((rows.group[:, None] == rows.group) & (values[:, None] > values))
    share = w[first] * w[second]
    if rows.grade is not None and rows.options["grade_weight"] == "difference":
        share = share * (values[first] - values[second])
    if rows.options["group_weight"] == "groups":
        for g in np.unique(rows.group):
            mine = rows.group[first] == g
            share[mine] /= share[mine].sum() if mine.any() else 1
    zero, lam = np.zeros(X.shape[1], LONG), np.full(X.shape[1], LONG(rows.lam))
    quadratic, absolute = (zero, lam) if l1 else (lam / 2, zero)
    objective = Objective(X[first] - X[second], share / share.sum(), loss, quadratic, absolute, zero, zero, False)
    objective.rows = rows
    return objective


def of_rows(rows, loss, quadratic, absolute=0.0, *, intercept="free", share=None):
    """Return the objective over all rows: `intercept` is "free", "penalised" or None."""
    X, w = rows.X.astype(LONG), rows.weights
    shift = X[0].copy() if intercept == "free" else np.zeros(X.shape[1], LONG)
    Z = X - shift
    if intercept is not None:
        Z = np.column_stack([Z, np.ones(len(Z), LONG)])
    penalised = np.ones(Z.shape[1], LONG)
    if intercept == "free":
        penalised[-1] = 0
    share = w / w.sum() if share is None else share
    return Objective(
        Z * rows.y.astype(LONG)[:, None], share, loss, LONG(quadratic) * penalised, LONG(absolute) * penalised,
        np.zeros(Z.shape[1], LONG), shift, intercept is not None,
    )  # fmt: skip


def of_margin_mean(rows, lam1, lam2):
    objective = of_rows(rows, hinge, 0.5, intercept=None)
    w, y = rows.weights, rows.y
    neg, pos = w[y < 0].sum(), w[y > 0].sum()
    pull = np.where(y > 0, neg / pos, pos / neg)
    objective.centre = LONG(lam1) * ((w / w.sum() * pull) @ objective.Z)
    objective.share = LONG(lam2) * objective.share
    return objective


def of_univariate(rows, loss):
    """Return the objective of the univariate square or exponential, whose least over the intercept is meant."""
    w, y = rows.weights, rows.y
    share = np.where(y > 0, w / w[y > 0].sum(), w / w[y < 0].sum()) / 2
    return of_rows(rows, loss, rows.lam / 2, intercept="free", share=share)
