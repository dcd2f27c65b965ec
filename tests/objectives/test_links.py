import math

import numpy as np
import pytest
from support import link_twins as twin

from aucdist.errors import InputError
from aucdist.objectives.link_kernels import loss_and_slope
from aucdist.objectives.links import Link, LinkLoss
from aucdist.objectives.probability_maps import IsotonicMap, LinkMap, map_from_json

ALL = [Link("gev", xi) for xi in (-1.0, -0.3, 0.0, 1e-250, 0.4, 3.0)] + [
    Link(n) for n in ("logit", "probit", "cloglog")
]


@pytest.mark.parametrize("link", ALL)
def test_score_is_the_inverse(link):
    for p in (1e-9, 0.01, 0.2, 0.5, 0.9, 0.999):
        found, complement = link.probabilities([link.score(p)])
        assert found[0] == pytest.approx(p, rel=1e-12)
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
        (lambda: LinkLoss(Link("gev", 1.0)), "below 1: from there on the distribution has no mean"),
        (lambda: LinkLoss(Link("logit"), "hinge"), "unknown loss"),
        (lambda: map_from_json({"kind": "spline", "odds": 1.0}), "unknown kind of calibration 'spline'"),
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
    again = map_from_json(made.to_json())
    np.testing.assert_array_equal(again(scores), made(scores))
    np.testing.assert_allclose(made.shifted(0.7)(scores - 0.7), made(scores), atol=1e-14)
    np.testing.assert_allclose(made(scores).sum(axis=1), 1.0, rtol=1e-15)


def test_correction_is_bayes_rule():
    """Two normal classes: the posterior of any mixture is known."""
    scores = np.linspace(-3, 4, 29)
    posterior = LinkMap(1.0, Link("logit"), 1.0, -0.5)  # of N(1, 1) and N(0, 1), half of each
    for prior in (0.5, 0.01, 0.2):
        density = np.exp(-0.5 * (scores[:, None] - [0.0, 1.0]) ** 2) * [1 - prior, prior]
        found = posterior.corrected(0.5, prior)(scores)
        np.testing.assert_allclose(found, density / density.sum(axis=1, keepdims=True), rtol=1e-13)
    assert posterior.corrected(0.5, None) is posterior
