import numpy as np

from aucdist.sampling.distance import Rule


def test_a_distance_on_the_edge_of_a_bin_belongs_to_the_nearer_one():
    rule = Rule(None, -1, 0.0, 10.0, 0, 10, 0)
    distances = np.array([0.0, 0.5, 1.0, np.nextafter(1.0, 2.0), 2.0, 9.0, np.nextafter(9.0, 10.0), 10.0])
    expected = 1.0 - np.array([0, 0, 0, 1, 1, 8, 9, 9]) / 10
    np.testing.assert_array_equal(rule.rates(distances), expected)
