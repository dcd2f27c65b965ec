import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from imblearn.pipeline import make_pipeline
from scipy.spatial.distance import cdist
from sklearn.cluster import AgglomerativeClustering
from sklearn.linear_model import LogisticRegression
from support.tables import table_beside

from aucdist.errors import InputError
from aucdist.sampling import MWMOTE


def problem(n=120, n_pos=20, d=3, seed=0):
    r = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n_pos, 1, -1)
    return r.normal(size=(n, d)) + 1.2 * (y[:, None] > 0), y


def weights_twin(X, y, k1, k2, k3, c_f_th, c_max):
    """Steps 1 to 8 of algorithm 1, one distance at a time."""
    small, large = np.flatnonzero(y > 0), np.flatnonzero(y < 0)

    def near(i, among, k):
        others = [j for j in among if j != i]
        return sorted(others, key=lambda j: np.linalg.norm(X[i] - X[j]))[:k]

    clean = [i for i in small if any(y[j] > 0 for j in near(i, range(len(y)), k1))]
    border = sorted({j for i in clean for j in near(i, large, k2)})
    informative = {i: near(i, small, k3) for i in border}
    starts = {j for around in informative.values() for j in around}

    def closeness(b, x):
        if x not in informative[b]:
            return 0.0
        f = X.shape[1] / np.linalg.norm(X[b] - X[x])
        return min(f, c_f_th) / c_f_th * c_max

    weight = {}
    for x in starts:
        weight[x] = sum(closeness(b, x) ** 2 / sum(closeness(b, q) for q in starts) for b in border)
    return np.array([weight.get(i, 0.0) for i in small]), np.isin(small, clean)


@pytest.mark.parametrize("k3", [None, 4])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weights_are_those_of_the_steps_written_out(seed, k3):
    X, y = problem(seed=seed)
    weights, kept = MWMOTE(k3=k3, c_f_th=1.5)._weights(X, np.flatnonzero(y > 0))
    expected, clean = weights_twin(X, y, 5, 3, 10 if k3 is None else 4, 1.5, 2.0)
    np.testing.assert_allclose(weights, expected, rtol=1e-10)
    np.testing.assert_array_equal(kept, clean)
    assert expected.any()


@pytest.mark.parametrize("c_p", [0.5, 1.5, 3.0])
def test_clusters_are_those_of_average_linkage(c_p):
    X, y = problem(300, 60)
    ours = X[y > 0]
    kept = np.arange(60) % 5 > 0
    clean = cdist(ours[kept], ours[kept])
    np.fill_diagonal(clean, np.inf)
    threshold = c_p * clean.min(axis=1).mean()
    expected = AgglomerativeClustering(n_clusters=None, distance_threshold=threshold, linkage="average").fit(ours)
    clusters = MWMOTE(c_p=c_p)._clusters(ours, kept)
    together = clusters[:, None] == clusters
    np.testing.assert_array_equal(together, expected.labels_[:, None] == expected.labels_)
    assert clusters.min() == 0


def test_new_rows_lie_between_two_rows_of_one_cluster():
    X, y = problem()
    far = X.copy()
    far[:8] += 50.0  # a cluster of its own
    sampler = MWMOTE(random_state=0)
    more, labels = sampler.fit_resample(far, y)
    np.testing.assert_array_equal(more[:120], far)
    assert (labels[:120] == y).all()
    assert (labels[120:] == 1).all()
    assert (labels > 0).sum() == (labels < 0).sum() == 100
    ours = far[y > 0]
    weights, kept = sampler._weights(far, np.flatnonzero(y > 0))
    cluster = sampler._clusters(ours, kept)
    for row in more[120:]:
        assert any(
            between(row, ours[i], ours[j])
            for i in np.flatnonzero(weights)
            for j in np.flatnonzero(cluster == cluster[i])
        )


def between(row, a, b):
    return np.linalg.norm(row - a) + np.linalg.norm(row - b) <= np.linalg.norm(a - b) + 1e-9


def test_starts_are_drawn_by_weight():
    """Two rows make clusters of their own, so that each new row is a copy of its start."""
    X, y = problem(400, 20)
    sampler = MWMOTE(c_p=1e-9, random_state=0)
    more, _ = sampler.fit_resample(X, y)
    weights, _ = sampler._weights(X, np.flatnonzero(y > 0))
    counts = np.array([(np.abs(more[400:] - row).max(axis=1) < 1e-12).sum() for row in X[y > 0]])
    assert counts.sum() == 360
    expected = 360 * weights / weights.sum()
    assert (np.abs(counts - expected) <= 4 * np.sqrt(expected) + 1e-9).all()


def test_sampling_strategy_and_types():
    X, y = problem()
    assert (MWMOTE(sampling_strategy=0.5, random_state=0).fit_resample(X, y)[1] > 0).sum() == 50
    same, labels = MWMOTE(sampling_strategy=0.1, random_state=0).fit_resample(X, y)
    np.testing.assert_array_equal(same, X)
    frame = pd.DataFrame(X, columns=list("abc"))
    more, labels = MWMOTE(random_state=0).fit_resample(frame, np.where(y > 0, "rare", "usual"))
    assert more.columns.tolist() == ["a", "b", "c"]
    assert (labels == "rare").sum() == 100
    np.testing.assert_array_equal(more.to_numpy(), MWMOTE(random_state=0).fit_resample(X, y)[0])
    assert make_pipeline(MWMOTE(random_state=0), LogisticRegression()).fit(X, y).score(X, y) > 0.7


def test_of_more_classes_each_is_made_as_large_as_the_largest():
    X, y = problem(240, 60)
    three = np.where(y < 0, 0, 1 + (np.arange(240) < 20))
    sampler = MWMOTE(random_state=0)
    more, labels = sampler.fit_resample(X, three)
    assert np.bincount(labels).tolist() == [180, 180, 180]
    assert sampler.sampling_strategy_ == {2: 160, 1: 140}
    # The smallest class comes first: it is made as if all others were one class.
    random = np.random.RandomState(0)
    np.testing.assert_array_equal(more[240:400], sampler._made(X, np.flatnonzero(three == 2), 160, random))
    np.testing.assert_array_equal(more[400:], sampler._made(X, np.flatnonzero(three == 1), 140, random))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_keep_their_type(kind):
    X, y = problem()
    frame = pd.DataFrame({"a": X[:, 0].astype(kind), "b": np.arange(120)})
    for rows in (X.astype(kind), sp.csr_matrix(X.astype(kind)), frame):
        more, _ = MWMOTE(random_state=0).fit_resample(rows, y)
        assert type(more) is type(rows)
        assert (more.dtypes.tolist() if rows is frame else more.dtype) == (
            [kind, np.float64] if rows is frame else kind
        )
    np.testing.assert_array_equal(more["b"][:120], np.arange(120))  # whole numbers lie between whole numbers no more


def test_equal_rows_of_both_classes_are_as_close_as_can_be():
    X, y = problem()
    X[30:33] = X[0]
    assert np.isfinite(MWMOTE(random_state=0).fit_resample(X, y)[0]).all()


def test_a_single_clean_row_is_a_cluster_of_its_own():
    assert MWMOTE()._clusters(np.zeros((1, 2)), np.array([True])).tolist() == [0]
    assert len(set(MWMOTE()._clusters(np.arange(6.0).reshape(3, 2), np.array([True, False, False])))) == 3


@pytest.mark.parametrize(("parameters", "message"), table_beside(__file__))
def test_bad_parameters(parameters, message):
    with pytest.raises(InputError, match=message):
        MWMOTE(**parameters).fit_resample(*problem())


def test_bad_data():
    X, _ = problem()
    said = r"2 rows of the smaller class are needed as neighbours \(k3\), but there are 1"
    with pytest.raises(InputError, match=said):
        MWMOTE().fit_resample(X, np.where(np.arange(120) < 1, 1, -1))
    apart = np.vstack([np.arange(6)[:, None] * 100.0, np.repeat(np.arange(6)[:, None] * 100.0 + 1, 10, axis=0)])
    with pytest.raises(InputError, match="all of them count as noise"):
        MWMOTE().fit_resample(apart, np.where(np.arange(66) < 6, 1, -1))
    with pytest.raises(InputError, match="1 classes in y"):
        MWMOTE().fit_resample(X, np.ones(120))
