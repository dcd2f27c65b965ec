"""Edges in the units of a column: the same values lie above them as above the edges of the scaled values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucdist.data.block import Block
from aucdist.data.preprocess import Preprocessor
from aucdist.export.portable import edges_in_units

shifts = st.floats(-1e6, 1e6)
factors = st.floats(1e-6, 1e6)
values = st.floats(-0.9, 1e8)


@given(st.lists(values, min_size=1, max_size=5), shifts, factors, st.booleans())
def test_values_on_both_sides_of_an_edge_stay_there(on: list[float], shift: float, factor: float, logged: bool) -> None:
    preprocessor = Preprocessor((0,) if logged else (), "standard", np.array([shift]), np.array([factor]))

    def scaled(x: np.ndarray) -> np.ndarray:
        return preprocessor.transform(Block.of(x[:, np.newaxis], np.ones(len(x), dtype=np.int8))).X[:, 0]

    edges = np.sort(scaled(np.array(on)))  # values lie exactly on them
    found = edges_in_units(edges, 0, preprocessor)
    assert (np.diff(found) >= 0).all()
    assert (scaled(found) <= edges).all()
    assert (scaled(np.nextafter(found, np.inf)) > edges).all()


def test_without_a_scaling_edges_stay_as_they_are() -> None:
    edges = np.array([0.5, 1.5])
    assert edges_in_units(edges, 0, Preprocessor((), "none", None, None)) is edges


@pytest.mark.parametrize("edge", [-1e300, 0.0, 5e-324, 1e300])
def test_edges_at_the_ends_of_floating_point(edge: float) -> None:
    preprocessor = Preprocessor((), "maxabs", None, np.array([1.0]))
    assert edges_in_units(np.array([edge]), 0, preprocessor).tolist() == [edge]
