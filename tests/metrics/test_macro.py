"""The macro AUC of several classes: for one class it is DeLong's test, and its error is that of resampled rows."""

import numpy as np
import pytest

from aucdist.errors import InputError
from aucdist.metrics.compare import delong_covariance, delong_test
from aucdist.metrics.macro import macro_auc, macro_auc_interval, macro_auc_test, measured_classes


def rows(n: int = 300, k: int = 4, seed: int = 0, *, topics: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return members, and the scores of two models, one better than the other, with ties."""
    r = np.random.default_rng(seed)
    members = r.random((n, k)) < 0.3 if topics else r.integers(k, size=n)[:, np.newaxis] == np.arange(k)
    return members, *((members * slope + r.normal(size=(n, k))).round(1) for slope in (1.5, 0.8))


def test_one_class_is_the_test_of_delong() -> None:
    members, one, other = (part[:, :1] for part in rows())
    y = np.where(members[:, 0], 1, -1)
    expected = delong_test(y, one[:, 0], other[:, 0])
    found = macro_auc_test(members, one, other)
    np.testing.assert_allclose(
        [found.value, found.low, found.high, found.p_value],
        [expected.value, expected.low, expected.high, expected.p_value],
    )
    areas, covariance = delong_covariance(y, [one[:, 0]])
    area, low, high = macro_auc_interval(members, one)
    assert area == pytest.approx(areas[0])
    assert (high - low) / 2 == pytest.approx(1.959963984540054 * covariance[0, 0] ** 0.5)


@pytest.mark.parametrize("topics", [False, True])
def test_the_error_is_that_of_resampled_rows(topics: bool) -> None:
    members, one, other = rows(topics=topics)
    found = macro_auc_test(members, one, other)
    r, drawn = np.random.default_rng(1), []
    for _ in range(400):
        at = r.integers(len(members), size=len(members))
        drawn.append(macro_auc(members[at], one[at])[0] - macro_auc(members[at], other[at])[0])
    by_parts = (found.high - found.low) / (2 * 1.959963984540054)
    assert by_parts == pytest.approx(np.std(drawn), rel=0.15)
    assert found.value == pytest.approx(np.mean(drawn), abs=0.01)
    assert 0 < found.low < found.value < found.high


def test_equal_models_and_small_classes() -> None:
    members, one, _ = rows(30)
    found = macro_auc_test(members, one, one)
    assert (found.value, found.p_value, found.method) == (0.0, 1.0, "exact-bound")
    assert found.low < 0 < found.high
    members[:, 2] = False
    members[0, 2] = True
    assert measured_classes(members).tolist() == [0, 1, 3]
    with pytest.raises(InputError, match="each class needs two rows"):
        macro_auc(members, one)


def test_an_interval_of_classes_that_are_ranked_rightly_is_not_a_point() -> None:
    members = np.arange(30)[:, np.newaxis] % 3 == np.arange(3)
    area, low, high = macro_auc_interval(members, members.astype(float))
    assert (area, high) == (1.0, 1.0)
    assert low == pytest.approx(0.05 ** (1 / 10))
