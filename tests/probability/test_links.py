import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import norm
from support import link_twins as twin

from aucdist.data.own_files import parse_checked
from aucdist.errors import InputError
from aucdist.probability.link_kernels import curvature, loss_and_slope, probability, shape_terms, slope_of
from aucdist.probability.links import IsotonicMap, Link, LinkLoss, LinkMap, SavedMap

ALL = [Link("gev", xi) for xi in (-1.0, -0.3, 0.0, 1e-250, 0.4, 3.0)] + [
    Link(n) for n in ("logit", "probit", "cloglog")
]


@pytest.mark.parametrize("link", ALL)
def test_score_is_the_inverse(link):
    for p in (1e-9, 0.01, 0.2, 0.5, 0.9, 0.999):
        p_pos, complement = link.probabilities([link.score(p)])
        assert p_pos[0] == pytest.approx(p, rel=1e-12)
        assert complement[0] == pytest.approx(1 - p, rel=1e-12)


@pytest.mark.parametrize("link", ALL)
def test_both_probabilities_are_exact(link):
    u = np.linspace(-3, 3, 13)
    positive, negative = link.probabilities(u)
    for i, score in enumerate(u):
        assert positive[i] == pytest.approx(twin.probability((link.name, link.xi), score), abs=1e-15)
    np.testing.assert_allclose(positive + negative, 1.0, rtol=1e-15)
    assert (np.diff(positive) >= 0).all()


@pytest.mark.parametrize("xi", [-1.0, -0.4, -0.1, -1e-3, -1e-12, 0.0, 1e-300, 1e-9, 0.05, 0.1, 0.6, 0.9])
def test_mean_of_the_distribution(xi):
    assert Link("gev", xi).mean == pytest.approx(float(twin.gev_mean(xi)), rel=1e-14)


def test_steepest_slope_of_gev_is_equation_nine():
    for xi in (-1.0, -0.5, 0.0, 0.7, 2.0):
        assert Link("gev", xi).steepest == pytest.approx(math.exp(-(1 + xi)) * (1 + xi) ** (1 + xi))


def test_loss_differs_from_the_papers_by_a_constant_for_each_class():
    """G(u) - y u with G any integral of g."""
    link = Link("gev", 0.25)
    terms = LinkLoss(link).terms
    u = np.linspace(-3, 5, 2001)
    g = link.probabilities(u)[0]
    G = np.concatenate(([0.0], np.cumsum(0.5 * (g[1:] + g[:-1]) * np.diff(u))))
    for y in (0, 1):
        ours = np.array([loss_and_slope(terms, s, y == 1)[0] for s in u])
        assert np.ptp(ours - (G - y * u)) < 1e-5


def test_which_losses_are_convex_and_bounded():
    assert [LinkLoss(Link("gev", xi), "likelihood").convex for xi in (-1.0, 0.0, 0.1)] == [True, True, False]
    assert LinkLoss(Link("gev", 0.9)).convex
    assert LinkLoss(Link("cloglog"), "likelihood").largest_curvature is None
    assert LinkLoss(Link("gev", -0.2), "likelihood").largest_curvature is None
    assert LinkLoss(Link("probit"), "likelihood").largest_curvature == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Link("gev", -1.01), "at least -1"),
        (lambda: Link("gev", math.nan), "at least -1"),
        (lambda: Link("gev", math.inf), "finite"),
        (lambda: Link("logit", 0.1), "only the link gev has a shape"),
        (lambda: Link("log"), "unknown link 'log'. Did you mean 'logit'"),
        (lambda: LinkLoss(Link("gev", 1.0)), "must be below 1; got 1.0. From 1 on the distribution has no mean"),
        (lambda: LinkLoss(Link("logit"), "hinge"), "unknown loss"),
        (lambda: parse_checked(b'{"kind": "spline", "odds": 1.0}', SavedMap, "the map"), "'kind'.*'link', 'isotonic'"),
    ],
)
def test_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


MAPS = [
    LinkMap(1.0, Link("gev", -0.2), 1.7, 0.3),
    LinkMap(0.25, Link("cloglog"), 0.1, -3.0),
    IsotonicMap(2.0, np.array([-1.0, 0.0, 0.1]), np.array([0.0, 0.3, 1.0])),
]


@pytest.mark.parametrize("made", MAPS)
def test_maps_are_saved_to_the_bit_and_shift(made):
    scores = np.linspace(-2, 2, 41)
    again = parse_checked(json.dumps(made.to_json()).encode(), SavedMap, "the map")
    np.testing.assert_array_equal(again(scores), made(scores))
    np.testing.assert_allclose(made.shifted(0.7)(scores - 0.7), made(scores), atol=1e-14)
    np.testing.assert_allclose(made(scores).sum(axis=1), 1.0, rtol=1e-15)


def test_correction_is_bayes_rule():
    """Two normal classes: the posterior of any mixture is known."""
    scores = np.linspace(-3, 4, 29)
    posterior = LinkMap(1.0, Link("logit"), 1.0, -0.5)  # of N(1, 1) and N(0, 1), half of each
    for prior in (0.5, 0.01, 0.2):
        density = np.exp(-0.5 * (scores[:, None] - [0.0, 1.0]) ** 2) * [1 - prior, prior]
        corrected = posterior.corrected(0.5, prior)(scores)
        np.testing.assert_allclose(corrected, density / density.sum(axis=1, keepdims=True), rtol=1e-13)
    assert posterior.corrected(0.5, None) is posterior


# ---- link functions ----------------------------------------------------------------------------


SHAPES = [
    -1.0, -0.99, -0.5, -0.1, -1e-3, -1e-6, -1e-12, -1e-300, -5e-324, 0.0, 5e-324, 1e-300, 1e-100, 1e-9, 1e-6, 1e-4, 1e-3, 0.05,
    0.2, 0.5, 0.9,
]  # fmt: skip
SCORES = [
    -700.0, -30.0, -9.0, -3.3, -1.0 - 1e-9, -1.0, -0.7, -1e-8, 0.0, 0.4, 1.0 - 1e-12, 1.0, 1.7, 2.0, 5.0, 37.0, 800.0
]  # fmt: skip
LINKS = [Link("gev", -0.6), Link("gev", 0.0), Link("gev", 0.3), Link("logit"), Link("probit"), Link("cloglog")]


@pytest.mark.nojit
@pytest.mark.parametrize("xi", [*SHAPES, 1.0, 2.5])
def test_gev_probability_to_the_last_digits(xi):
    terms = Link("gev", xi).terms(likelihood=True)
    for u in SCORES:
        values = probability(terms, u)
        expected = twin.gev(xi, u)
        for value, exact in zip(values, expected, strict=True):
            assert abs(value - float(exact)) <= 1e-15
        # Relative too, as far as the number 1 + xi u itself is known.
        if expected[0] > 1e-300 and abs(1 + xi * u) > 0.01:
            minus_log = -float(twin.mp.log(expected[0]))
            assert values[0] == pytest.approx(float(expected[0]), rel=1e-14 * max(1.0, minus_log))


@pytest.mark.nojit
@pytest.mark.parametrize("xi", [0.7, 1.0, 3.0, -0.7, -1.0])
def test_beyond_the_edge_of_the_support_probabilities_are_exact(xi):
    terms = Link("gev", xi).terms(likelihood=True)
    for u in (-1.0 / xi, math.nextafter(-1.0 / xi, -math.inf * xi), -3.0 / xi, -1e300 / xi):
        if 1.0 + xi * u <= 0.0:
            assert probability(terms, u) == ((0.0, 1.0) if xi > 0 else (1.0, 0.0))


@pytest.mark.nojit
@pytest.mark.parametrize("xi", [x for x in SHAPES if abs(x) != 5e-324])
def test_calibrated_loss_of_gev_against_incomplete_gamma(xi):
    terms = LinkLoss(Link("gev", xi)).terms
    for u in (-9.0, -3.3, -1.0, -0.7, 0.0, 0.4, 1.0, 1.7, 5.0, 37.0):
        for positive in (True, False):
            loss, slope = loss_and_slope(terms, u, positive)
            exact = float(twin.gev_loss(xi, u, positive))
            assert loss == pytest.approx(exact, rel=1e-11, abs=1e-15)
            assert loss >= 0.0
            assert slope == pytest.approx(float(twin.gev(xi, u)[0]) - positive, abs=1e-15)


@pytest.mark.nojit
@pytest.mark.parametrize("xi", [x for x in SHAPES if x != -1.0] + [2.0])
def test_likelihood_of_gev(xi):
    terms = LinkLoss(Link("gev", xi), "likelihood").terms
    for u in SCORES:
        for positive, exact in zip((True, False), twin.gev(xi, u), strict=True):
            loss = loss_and_slope(terms, u, positive)[0]
            if exact > 0:
                log = -float(twin.mp.log(exact)) if exact < 0.5 else -float(twin.mp.log1p(exact - 1))
                assert loss == pytest.approx(log, rel=1e-9, abs=1e-15)
            elif loss < math.inf:
                assert loss > 1e300 or float(1 + xi * u) > 0


@pytest.mark.nojit
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("loss", ["calibrated", "likelihood"])
def test_slope_and_curvature_are_derivatives(link, loss):
    both = LinkLoss(link, loss)
    h = 1e-5
    for u in (-2.5, -1.1, -0.3, 0.0, 0.2, 0.9, 1.3):
        for positive in (True, False):
            low, high = (loss_and_slope(both.terms, u + s * h, positive) for s in (-1, 1))
            value, slope = loss_and_slope(both.terms, u, positive)
            assert value >= 0.0
            assert slope == pytest.approx((high[0] - low[0]) / (2 * h), rel=1e-8, abs=1e-9)
            assert slope_of(both.terms, u, positive) == pytest.approx(slope, rel=1e-13, abs=1e-300)
            if both.convex:
                bend = (high[1] - low[1]) / (2 * h)
                assert curvature(both.terms, u, positive) == pytest.approx(bend, rel=1e-7, abs=1e-9)


@pytest.mark.nojit
def test_calibrated_slope_is_probability_less_label_for_every_link():
    for link in LINKS:
        terms = LinkLoss(link).terms
        for u in (-3.0, -0.4, 0.8, 2.0):
            p = twin.probability((link.name, link.xi), u)
            assert loss_and_slope(terms, u, True)[1] == pytest.approx(p - 1, abs=1e-14)
            assert loss_and_slope(terms, u, False)[1] == pytest.approx(p, abs=1e-14)


@pytest.mark.nojit
@pytest.mark.parametrize("u", [-60.0, -38.0, -9.0, -4.1, -3.9, -1.0, 0.0, 2.0, 4.1, 9.0, 30.0])
def test_normal_distribution_far_out(u):
    likelihood, calibrated = (LinkLoss(Link("probit"), name).terms for name in ("likelihood", "calibrated"))
    loss, slope = loss_and_slope(likelihood, u, True)
    assert loss == pytest.approx(-norm.logcdf(u), rel=1e-12)
    assert slope == pytest.approx(-math.exp(norm.logpdf(u) - norm.logcdf(u)), rel=1e-11)
    with twin.mp.workdps(60):
        x = twin.mp.mpf(u)
        exact = x * twin.mp.ncdf(x) + twin.mp.npdf(x)
        mills = twin.mp.npdf(x) / twin.mp.ncdf(x)
        bend = float(mills * (mills + x))
    assert loss_and_slope(calibrated, u, False)[0] == pytest.approx(float(exact), rel=1e-13)
    assert curvature(likelihood, u, True) == pytest.approx(bend, rel=1e-9)


@pytest.mark.nojit
def test_far_below_a_label_that_cannot_be_costs_a_lot_but_the_other_nothing():
    zero = LinkLoss(Link("gev", 0.0), "likelihood").terms
    for u in (-3.0, -5.0, -6.0):  # the probability is exp(-exp(-u)); its logarithm goes on where it has vanished
        assert loss_and_slope(zero, u, True) == pytest.approx((math.exp(-u), -math.exp(-u)), rel=1e-14)
        assert loss_and_slope(zero, u, False)[0] == pytest.approx(math.exp(-math.exp(-u)), rel=1e-9)
    assert loss_and_slope(zero, -720.0, True)[0] == math.inf
    assert loss_and_slope(zero, 900.0, False)[0] == pytest.approx(900.0)
    beyond = LinkLoss(Link("gev", 0.5), "likelihood").terms
    assert loss_and_slope(beyond, -2.0, True) == (math.inf, 0.0)
    assert loss_and_slope(beyond, -2.0, False) == (0.0, 0.0)


@pytest.mark.nojit
@pytest.mark.parametrize("xi", [-0.8, -0.3, -0.02, -1e-4, -1e-9])
def test_second_derivatives_by_the_shape(xi):
    h = 1e-5
    for u, positive in itertools.product((-3.0, -0.4, 0.3, 1.1), (True, False)):
        slopes = [shape_terms(xi + i * h, u + j * h, positive)[0] for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1))]
        _, own, mixed = shape_terms(xi, u, positive)
        if xi < -h:
            assert own == pytest.approx((slopes[1] - slopes[0]) / (2 * h), rel=1e-6, abs=1e-8)
        assert mixed == pytest.approx((slopes[3] - slopes[2]) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.nojit
@pytest.mark.parametrize("xi", [-0.3, -0.1, -0.02])
def test_series_of_the_second_derivatives_goes_on_from_the_formula(xi):
    # With t = 1e-4 the formula ends and the series begins; there the score has log t = log 1e-4.
    u = ((1e-4) ** -xi - 1.0) / xi
    for of_score in (
        lambda v: curvature(LinkLoss(Link("gev", xi), "likelihood").terms, v, False),
        lambda v: shape_terms(xi, v, False)[1],
        lambda v: shape_terms(xi, v, False)[2],
    ):
        step = 1e-9 * abs(u)
        before, after = of_score(u - step), of_score(u + step)
        assert before == pytest.approx(after, rel=1e-6)
        assert before != after


@pytest.mark.nojit
@pytest.mark.parametrize("xi", [1e-9, 0.02, 0.4, 1.5])
def test_derivatives_by_the_shape(xi):
    h = 1e-6
    for u in (-1.2, -0.4, 0.3, 1.1):
        if 1 + xi * u <= 0.01:
            continue
        informations = []
        for positive in (True, False):
            low, high = (
                loss_and_slope(LinkLoss(Link("gev", xi + s * h), "likelihood").terms, u, positive)[0] for s in (-1, 1)
            )
            slope, own, mixed = shape_terms(xi, u, positive)
            assert slope == pytest.approx((high - low) / (2 * h), rel=1e-6, abs=1e-8)
            by_score = loss_and_slope(LinkLoss(Link("gev", xi), "likelihood").terms, u, positive)[1]
            informations.append((slope, own, mixed, by_score))
        p = float(twin.gev(xi, u)[0])
        (of_pos, own, mixed, by_pos), (other, again, mixed_again, by_other) = informations
        assert own == again == pytest.approx(p * of_pos**2 + (1 - p) * other**2, rel=1e-9)
        assert mixed == mixed_again == pytest.approx(p * of_pos * by_pos + (1 - p) * other * by_other, rel=1e-8)


@pytest.mark.nojit
def test_information_replaces_the_curvature_where_that_may_be_negative():
    loss = LinkLoss(Link("gev", 0.5), "likelihood")
    for u in (-1.0, 0.5, 3.0):
        p = float(twin.gev(0.5, u)[0])
        slopes = [loss_and_slope(loss.terms, u, positive)[1] for positive in (True, False)]
        expected = p * slopes[0] ** 2 + (1 - p) * slopes[1] ** 2
        assert curvature(loss.terms, u, True) == pytest.approx(expected, rel=1e-9)
        assert curvature(loss.terms, u, False) == pytest.approx(expected, rel=1e-9)


@pytest.mark.nojit
def test_no_curvature_exceeds_the_bound():
    grid = np.linspace(-12, 12, 1201)
    for link in [*LINKS, Link("gev", -1.0), Link("gev", 0.9)]:
        for name in ("calibrated", "likelihood"):
            loss = LinkLoss(link, name)
            if loss.largest_curvature is not None:
                largest = max(curvature(loss.terms, u, positive) for u in grid for positive in (True, False))
                assert largest <= loss.largest_curvature * (1 + 1e-12)
                assert largest >= 0.97 * loss.largest_curvature or name == "likelihood"
