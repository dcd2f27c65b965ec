from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from aucdist.pairs.cell_cuts import CellEdges, CellSums
from aucdist.pairs.kernels import cut_groups, fill_cells, find_cells, index_edges
from aucdist.pairs.loss import HINGE, one_slice

pytestmark = pytest.mark.nojit

# Thirds: 1/3 + 2/3 and its neighbours are rounded differently in a - t < 1 and in a < 1 + t.
THIRDS = st.integers(-9, 9).map(lambda k: k / 3.0)
WILD = st.floats(-1e6, 1e6) | THIRDS | st.sampled_from([0.0, -0.0, 1e-300])


def scores_of(elements, least=1, most=12):
    return hnp.arrays(np.float64, st.integers(least, most), elements=elements)


def filled(scores, weights, edges):
    n_cells = len(edges.at) + 1
    cells, sums = np.empty(len(scores), dtype=np.int32), np.zeros((2, n_cells))
    lowest, highest = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
    fill_cells(scores, weights, edges, cells, sums, (lowest, highest))
    return cells, CellSums(sums, lowest, highest)


def slow_cells(scores, edges, n_places):
    """Return the cells, and whether each score lies in a place with several edges."""
    low, width = edges[0], edges[-1] - edges[0]
    scale = (n_places - 2) / width if width > 0 and (n_places - 2) / width < np.inf else 1.0
    places = [int(min(max(1.0 + (t - low) * scale, 0.0), n_places - 1.0)) for t in (*scores, *edges)]
    of_scores, of_edges = np.array(places[: len(scores)]), np.array(places[len(scores) :])
    crowded = np.array([np.count_nonzero(of_edges == p) > 1 for p in of_scores])
    exact, placed = (edges <= scores[:, None]).sum(axis=1), (of_edges <= of_scores[:, None]).sum(axis=1)
    return np.where(crowded, exact, placed), crowded


@given(scores_of(WILD), scores_of(WILD), st.integers(3, 40), st.sampled_from([0.0, 1.0]))
def test_cells_agree_with_counting_and_never_fall(scores, edges, n_places, shift):
    scores, edges, table = np.sort(scores), np.unique(edges), np.empty(n_places, dtype=np.int16)
    low, scale = index_edges(edges, table)
    cells = np.empty(len(scores), dtype=np.int32)
    find_cells(scores + shift, (edges, table, low, scale), cells)
    slow, crowded = slow_cells(scores + shift, edges, n_places)
    np.testing.assert_array_equal(cells, slow)
    assert (np.diff(cells) >= 0).all()
    np.testing.assert_array_equal(cells[crowded], np.searchsorted(edges, (scores + shift)[crowded], side="right"))


def test_a_place_of_all_edges_divides_by_comparing():
    # Scores as of heavy tails: the range is a thousand million times as wide as what lies in the middle.
    edges = np.concatenate(([-1e9], np.linspace(0.0, 1.0, 50), [1e9]))
    scores = np.linspace(-0.1, 1.1, 1000)
    cells, _ = filled(scores, np.ones(1000), CellEdges.of(edges))
    np.testing.assert_array_equal(cells, np.searchsorted(edges, scores, side="right"))


def cut_of(others, weights, sums):
    anchors, which = sums.as_anchors()
    coefs, histogram = np.empty(len(others)), np.zeros(anchors.n_gaps)
    active, below, slack, _ = cut_groups(
        (others, weights, one_slice(len(others))), HINGE.shifts, anchors.search, anchors.row_slack, coefs, histogram
    )
    n = len(which) + 2
    return (
        active,
        below,
        slack,
        coefs,
        which,
        -HINGE.anchor_slopes(histogram, replace(anchors, weights=np.ones(n)), np.arange(n))[1:-1],
    )


@given(scores_of(THIRDS), scores_of(THIRDS), scores_of(THIRDS | st.floats(-3.0, 3.0), most=6), st.integers(0, 9))
def test_a_cut_encloses_the_hinges_and_is_one_dual_point(anchors, others, edges, seed):
    r = np.random.default_rng(seed)
    w_anchors, w_others = r.random(len(anchors)) + 0.1, r.random(len(others)) + 0.1
    edges = CellEdges.of(edges)
    cells, sums = filled(anchors, w_anchors, edges)
    active, below, slack, coefs, which, slopes_of_cells = cut_of(others, w_others, sums)
    hinges = np.maximum(0.0, 1.0 - (anchors[:, None] - others[None, :])) * w_anchors[:, None] * w_others[None, :]
    assert below - 1e-12 <= hinges.sum() <= below + slack + 1e-12
    # The dual variables are 0 or 1 for a cell and a row: of the rows and of the anchors they are the same ones.
    slopes = slopes_of_cells[np.searchsorted(which, cells)] * w_anchors
    assert slopes.sum() == pytest.approx(coefs.sum())
    assert active == pytest.approx(coefs.sum())
    tangent = active - slopes @ anchors + coefs @ others
    assert tangent == pytest.approx(below, abs=1e-9)
