"""A hunt for false certificates: random problems that are hard on rounding, every estimator, truth in extended precision.

``python tests/hunt.py --seconds 600`` goes on from where the fixed seeds of `tests/test_hunt.py` end, and prints what it
finds.

A problem is rows with offsets up to 1e18, scales from 1e-8 to 1e8, weights over 24 decades, ties, duplicates, constant
columns, one positive row, separable classes; in float32 or float64, dense or sparse, in one to four blocks, in memory or
streamed. A fit's claims are held to three truths that share no code with the fits:

* *primal*: the objective at the weights, summed over all pairs or rows in 80-bit numbers (``numpy.longdouble``) after columns
  are shifted exactly, differs by no more than the certificate's `rounding`, and is below it by no more than its `slack`;
* *dual*: no weights found by any fit, or by a descent on the smoothed objective, have an objective below the lower bound;
* *gap*: nor below what the relative gap leaves open.
"""

import argparse
import sys
import time
import warnings
from dataclasses import dataclass
from unittest import mock

import numpy as np
import scipy.sparse as sp
from support.true_objectives import (
    LONG,
    exponential,
    hinge,
    logistic,
    of_margin_mean,
    of_pairs,
    of_pairs_in_groups,
    of_pairs_within,
    of_rows,
    of_top,
    of_univariate,
    ramp,
    square,
)

from aucdist import (
    HingeClassifier,
    LinkClassifier,
    MarginMeanClassifier,
    PairwiseHingeClassifier,
    PairwiseRampClassifier,
    PairwiseSquareClassifier,
    UnivariateRankingClassifier,
)
from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.pairs import cell_cuts, cutting_planes

SLACK = LONG(1e-15)
"""Of the 80-bit sums themselves, and of printing a primal in 64 bits, relative."""


# ---- problems ---------------------------------------------------------------------------------------------------------


@dataclass
class Rows:
    """A random problem."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    lam: float
    tol: float
    sparse: bool
    n_blocks: int
    streamed: bool

    def blocks(self):
        X = sp.csr_array(self.X) if self.sparse else self.X
        parts = into_blocks(Block.of(X, self.y, weight=self.weight), self.n_blocks)
        return LocalBlocks.load(parts.__getitem__, len(parts), stream=True) if self.streamed else LocalBlocks(parts)

    @property
    def weights(self):
        return np.ones(len(self.y), LONG) if self.weight is None else self.weight.astype(LONG)


@dataclass
class RowsInGroups(Rows):
    """The same with groups, and maybe grades; the options say what a group and a pair of grades count."""

    group: np.ndarray
    grade: np.ndarray | None
    options: dict

    def blocks(self):
        X = sp.csr_array(self.X) if self.sparse else self.X
        rows = Block.of(X, self.y, weight=self.weight, group=self.group, grade=self.grade)
        return LocalBlocks(into_blocks(rows, self.n_blocks))


def in_groups_of(rows, seed):
    """Return the rows in up to four groups, every other time with grades; None where no group has a pair."""
    rng = np.random.default_rng([seed, 1])
    group, grade, y = rng.integers(0, rng.integers(1, 5), len(rows.y)), None, rows.y
    options = {"group_weight": str(rng.choice(["pairs", "groups"]))}
    if seed % 2:
        grade = np.where(y > 0, rng.choice([1.0, 2.0, 4.0], len(y)), 0.0)
        options["grade_weight"] = str(rng.choice(["difference", "one"]))
    values = y if grade is None else grade
    if not any(len(np.unique(values[group == g])) > 1 for g in np.unique(group)):
        return None
    return RowsInGroups(**vars(rows), group=group, grade=grade, options=options)


def problem(seed):
    """Return the problem of a seed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    kind = rng.integers(0, 4, d)
    X[:, kind == 1] = np.round(X[:, kind == 1])  # ties
    X[:, kind == 2] = X[0, kind == 2]  # constant
    X *= 10.0 ** rng.uniform(-8, 8, d) if rng.random() < 0.4 else 1.0
    if rng.random() < 0.5:
        X += np.where(rng.random(d) < 0.5, 10.0 ** rng.uniform(0, 18, d), 0.0)
    if rng.random() < 0.3:
        X[rng.integers(0, n, n // 3)] = X[rng.integers(0, n, n // 3)]  # duplicates, in both classes
    if rng.random() < 0.3:
        X[rng.random((n, d)) < 0.6] = 0.0
    X = X.astype(np.float32 if rng.random() < 0.3 else np.float64)
    ranges = np.ptp(X, axis=0).astype(np.float64)
    score = (X - X.mean(axis=0)) @ (
        rng.normal(size=d) / np.where(ranges > 0.0, ranges, np.inf)
    )  # constant columns say nothing
    score = score + (0.0 if rng.random() < 0.3 else rng.normal(size=n) * np.ptp(score))  # separable or not
    n_pos = 1 if rng.random() < 0.2 else int(rng.integers(1, n - 1))
    y = np.full(n, -1)
    y[np.argsort(score)[n - n_pos :]] = 1
    weight = 10.0 ** rng.uniform(-12, 12, n) if rng.random() < 0.2 else rng.uniform(0.1, 3, n)
    wide = np.random.default_rng((seed, 6))  # of its own, so that the other problems stay what they were
    if wide.random() < 0.15:  # more features than rows
        X = np.hstack([X, wide.normal(size=(n, n)) * 10.0 ** wide.uniform(-8, 8)]).astype(X.dtype)
    return Rows(
        X, y, weight if rng.random() < 0.4 else None, 10.0 ** rng.uniform(-6, 1), 10.0 ** rng.uniform(-8, -2),
        bool(rng.random() < 0.3), int(rng.integers(1, 5)), bool(rng.random() < 0.3),
    )  # fmt: skip


def in_cone(objective, signs):
    """Return an objective whose descents stay among weights of given signs."""
    free = [(None, None)] * (objective.Z.shape[1] - len(signs))
    objective.bounds = [(0 if s > 0 else None, 0 if s < 0 else None) for s in signs] + free
    return objective


class InCells(PairwiseHingeClassifier):
    """A fit with anchors in cells, as of very many rows; so few cells that some stay in doubt."""

    n_cells = 8

    def fit(self, *args, **kwargs):
        with mock.patch.object(cutting_planes, "MAX_ANCHORS", 0), mock.patch.object(cell_cuts, "CELLS", self.n_cells):
            return super().fit(*args, **kwargs)


class InManyCells(InCells):
    n_cells = 256


class InFeatureGroups(PairwiseHingeClassifier):
    """A fit whose penalty has a group of weights for two columns each."""

    def _solver_options(self, seed=None):
        return super()._solver_options(seed) | {"feature_groups": feature_groups(self.n_features_in_)}


class InGroupsAndCells(InFeatureGroups, InCells):
    pass


def feature_groups(n_features):
    """Return the number of each column's group."""
    return np.arange(n_features) // 2


# ---- fits -------------------------------------------------------------------------------------------------------------


def fits(rows, seed):
    """Yield (objective, [models]) for every objective: all fits of one objective bear witness against each other."""
    more = {"lam": rows.lam, "tol": rows.tol, "max_passes": 150}
    drawn = more | {"random_state": seed % 1000}
    alone = rows.weight is None
    pairs = [PairwiseHingeClassifier(**more), InCells(**more), InManyCells(**more)]
    pairs += [PairwiseHingeClassifier(solver="oam-inf", **more)]
    single = [
        {"solver": {"name": "sdcd", "epochs": 20}}, {"solver": {"name": "sdcd-perm", "epochs": 20}},
        {"solver": {"name": "sdcd", "epochs": 8, "average": True}},
    ]  # fmt: skip
    pairs += [PairwiseHingeClassifier(**options, **drawn) for options in single]
    if alone:
        pairs += [PairwiseHingeClassifier(solver={"name": "msgd", "epochs": 20}, **drawn)]
    yield of_pairs(rows, hinge), pairs
    yield (
        of_pairs(rows, hinge, l1=True),
        [kind(penalty="l1", **more) for kind in (PairwiseHingeClassifier, InCells, InManyCells)],
    )
    groups = feature_groups(rows.X.shape[1])
    in_groups = [kind(penalty="group-l1", **more) for kind in (InFeatureGroups, InGroupsAndCells)]
    yield of_pairs_in_groups(rows, groups), in_groups
    if (grouped := in_groups_of(rows, seed)) is not None:
        own = more | grouped.options
        within = [PairwiseHingeClassifier(**own)]
        within += [PairwiseHingeClassifier(**own, **options, random_state=seed % 1000) for options in single]
        yield of_pairs_within(grouped, hinge), within
        yield of_pairs_within(grouped, hinge, l1=True), [PairwiseHingeClassifier(penalty="l1", **own)]
        yield of_pairs_within(grouped, square), [PairwiseSquareClassifier(**own)]
        yield of_pairs_within(grouped, ramp), [PairwiseRampClassifier(**own)]
    part = (0.05, 0.3, 0.8)[seed % 3]
    yield of_top(rows, part), [PairwiseHingeClassifier(max_fpr=part, **more)]
    yield of_top(rows, part, l1=True), [PairwiseHingeClassifier(max_fpr=part, penalty="l1", **more)]
    square_fits = [PairwiseSquareClassifier(**more), PairwiseSquareClassifier(solver="svrg", **drawn)]
    square_fits += [PairwiseSquareClassifier(solver=s, **drawn) for s in ("tpauc", "opauc")]
    yield of_pairs(rows, square), square_fits
    yield of_pairs(rows, ramp), [PairwiseRampClassifier(**more)]
    signs = np.random.default_rng(seed).choice([-1, 0, 1], rows.X.shape[1])
    signs[0] = signs[0] or 1
    cone = more | {"monotone": {j: "increasing" if s > 0 else "decreasing" for j, s in enumerate(signs) if s}}
    yield in_cone(of_pairs(rows, hinge), signs), [kind(**cone) for kind in (PairwiseHingeClassifier, InCells)]
    yield (
        in_cone(of_pairs(rows, hinge, l1=True), signs),
        [kind(penalty="l1", **cone) for kind in (PairwiseHingeClassifier, InCells)],
    )
    in_groups = [kind(penalty="group-l1", **cone) for kind in (InFeatureGroups, InGroupsAndCells)]
    yield in_cone(of_pairs_in_groups(rows, groups), signs), in_groups
    yield in_cone(of_top(rows, part), signs), [PairwiseHingeClassifier(max_fpr=part, **cone)]
    yield in_cone(of_pairs(rows, ramp), signs), [PairwiseRampClassifier(**cone)]
    yield in_cone(of_pairs(rows, square), signs), [PairwiseSquareClassifier(**cone)]
    yield (
        in_cone(of_rows(rows, logistic, rows.lam / 2, intercept="free"), signs),
        [LinkClassifier(link="logit", **cone)],
    )
    lam = rows.lam
    for intercept in ("free", None):
        free = {"fit_intercept": intercept == "free"}
        primal = [HingeClassifier(solver=s, **more, **free) for s in ("comid", "rda")]
        primal += [HingeClassifier(solver=s, **drawn, **free) for s in ("scd", "pegasos")]
        if intercept is None:
            primal += [HingeClassifier(fit_intercept=False, **drawn)]
        yield of_rows(rows, hinge, lam, intercept=intercept), primal
        lasso = [HingeClassifier(penalty="l1", solver=s, **more, **free) for s in ("comid", "rda")]
        lasso += [HingeClassifier(penalty="l1", solver="scd", **drawn, **free)]
        yield of_rows(rows, hinge, 0.0, lam, intercept=intercept), lasso
    dual = [HingeClassifier(solver="sdcd", **drawn), HingeClassifier(solver="cdcd", **more)]
    yield of_rows(rows, hinge, lam, intercept="penalised"), dual
    for intercept in ("free", "penalised", None):
        options = {"fit_intercept": intercept is not None, "penalise_intercept": intercept == "penalised"}
        links = [LinkClassifier(link="logit", solver=s, **more, **options) for s in ("newton", "lipschitz", "gradient")]
        yield of_rows(rows, logistic, lam / 2, intercept=intercept), links
    yield of_univariate(rows, square), [UnivariateRankingClassifier(solver="uni-squ", **drawn)]
    univariate = [UnivariateRankingClassifier(**more), UnivariateRankingClassifier(solver="uni-exp", **drawn)]
    yield of_univariate(rows, exponential), univariate
    lam2 = 1.0 / lam
    options = {
        "lam2": lam2,
        "sampler": None,
        "scale": None,
        "tol": rows.tol,
        "random_state": seed % 1000,
    }
    yield (
        of_margin_mean(rows, 1.0, lam2),
        [MarginMeanClassifier(solver={"name": name, "n_outer": 20}, **options) for name in ("svrg", "zovr")],
    )


def hunt(seed, only=None):
    """Return (number of fits, findings) of a seed's problem; `only` names an estimator to try alone."""
    rows, n_fits, findings = problem(seed), 0, []
    for objective, models in fits(rows, seed):
        if only not in (None, type(models[0]).__name__):
            continue
        done = []
        for model in models:
            n_fits += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    model.fit((objective.rows or rows).blocks())
                except Exception as error:
                    findings.append(f"seed {seed} {model}: {type(error).__name__}: {error}")
                    continue
            done.append((model, _weights(objective, model)))
        if not done:
            continue
        points = [v for _, v in done if np.isfinite(v.astype(float)).all()]
        best = min(points, key=objective.value, default=None)
        if best is None:
            continue
        lowest = objective.value(objective.descended(best))
        lowest = min(lowest, objective.value(best))
        for model, v in done:
            findings += [f"seed {seed} {model}: {text}" for text in _false(objective, model, v, lowest)]
    return n_fits, findings


def _weights(objective, model):
    if isinstance(model, UnivariateRankingClassifier):
        return _with_best_intercept(objective, objective.of(model.coef_[0], 0.0))
    return objective.of(model.coef_[0], float(model.intercept_[0]))


def _with_best_intercept(objective, v):
    """Return v with the intercept that makes the loss least: margins are y (s + b)."""
    v = v.copy()
    v[-1] = 0
    side = objective.Z[:, -1]
    if objective.loss is exponential:
        exponents = np.log(objective.share) - objective.Z @ v
        v[-1] = (_log_of_sum(exponents[side > 0]) - _log_of_sum(exponents[side < 0])) / 2
        return v
    v[-1] = (objective.share * side * (1 - objective.Z @ v)).sum() / objective.share.sum()
    return v


def _log_of_sum(exponents):
    return exponents.max() + np.log(np.exp(exponents - exponents.max()).sum())


def _false(objective, model, v, lowest):
    """Yield what is false in a certificate."""
    c = model.certificate_
    truth = objective.value(v)
    high = LONG(c.primal) + LONG(c.rounding)
    error = LONG(c.rounding) + SLACK * abs(truth)
    if not -error <= LONG(c.primal) - truth <= LONG(c.slack) + error:
        yield f"primal {c.primal!r} +- {c.rounding:.3g}, slack {c.slack:.3g}, truly {truth!r} ({c.status})"
    if not LONG(c.dual) - LONG(c.rounding) <= lowest * (1 + SLACK):
        yield f"dual {c.dual!r} +- {c.rounding:.3g}, but {lowest!r} is reached ({c.status})"
    if not truth - lowest <= LONG(c.relative_gap) * truth + SLACK * high:
        yield f"gap {c.relative_gap!r}, truly {(truth - lowest) / truth!r} at least ({c.status})"
    if c.status == "converged" and not c.relative_gap <= model.tol:
        yield f"converged at a gap of {c.relative_gap!r}, above {model.tol!r}"


def main(argv=None):
    """Hunt until the time is over, and return the number of findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="how many seeds at most")
    options = parser.parse_args(argv)
    end, seed, n_fits, n_false = time.monotonic() + options.seconds, options.first, 0, 0
    while time.monotonic() < end and seed < options.first + options.count:
        fitted, findings = hunt(seed)
        n_fits, n_false, seed = n_fits + fitted, n_false + len(findings), seed + 1
        for finding in findings:
            print(finding, flush=True)
    print(f"{n_fits} fits of {seed - options.first} problems: {n_false} findings")
    return n_false


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
