import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from aucdist.data.block import Block, into_blocks
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.steps import first_argument
from aucdist.errors import InputError
from aucdist.sampling import DistanceUnderSampler, Hyperplane, Rule, measure_distances

AXIS = Hyperplane(np.array([1.0, 0.0]), 0.0)
"""The distance is the size of the first feature."""


def problem(n=2000, share=0.02, seed=0, rounded=False):
    r = np.random.default_rng(seed)
    y = np.where(np.arange(n) < share * n, 1, -1)
    X = r.normal(size=(n, 2)) + 1.0 * (y[:, None] > 0)
    return (np.round(X, 1) if rounded else X), y


def nearest(X, y, ratio):
    """Return the rows of the larger class in the order of their distance."""
    return np.sort(np.abs(X[y < 0, 0]))[: int(ratio * (y > 0).sum())]


def rate(distance, low, high, m):
    """Equation (4) with its bins counted one by one."""
    for j in range(1, m):
        if distance <= low + j * (high - low) / m:
            return 1 - (j - 1) / m
    return 1 - (m - 1) / m


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=30, unique=True), st.integers(2, 12))
def test_rates(numbers, m):
    distances = np.array(sorted(numbers)) / 16
    rule = Rule(AXIS, -1, distances[0], distances[-1], 0, m, 0)
    rates = rule.rates(distances)
    # A distance on the border of two bins may fall to either by rounding.
    off = np.abs((distances - distances[0]) * m / (distances[-1] - distances[0]) % 1)
    inner = (off > 1e-9) & (off < 1 - 1e-9)
    np.testing.assert_allclose(
        rates[inner], [rate(d, distances[0], distances[-1], m) for d in distances[inner]], atol=1e-12
    )
    assert rates[0] == 1.0
    assert rates[-1] == pytest.approx(1 / m)
    assert (np.diff(rates) <= 0).all()


@pytest.mark.parametrize("rounded", [False, True], ids=["all apart", "ties"])
@pytest.mark.parametrize("ratio", [3, 3.5, 10])
@pytest.mark.parametrize("n_blocks", [1, 4])
def test_u2_takes_part_of_exactly_the_nearest_rows(n_blocks, ratio, rounded):
    X, y = problem(rounded=rounded)
    sampler = DistanceUnderSampler(method="u2", ratio=ratio, svm=AXIS, random_state=1)
    parts = into_blocks(Block.of(X, y), n_blocks)
    rule = sampler.rule(LocalBlocks(parts))
    expected = nearest(X, y, ratio)
    assert (rule.low, rule.high) == (expected[0], expected[-1])
    always = Rule(AXIS, -1, rule.low, np.inf, 0, 2, 0)
    assert (always.rates(expected[:-1]) == 1.0).all()
    # With every rate at 1 the rule keeps as many as were asked for, whichever of the ties these are.
    taken = 0
    for part in parts:
        which = (part.y < 0) & (np.abs(part.X[:, 0]) <= rule.high)
        ((near, lots),) = measure_distances(part, AXIS, -1, rule.seed)
        assert near.min() >= rule.low
        taken += ((near < rule.high) | ((near == rule.high) & (lots <= np.uint64(rule.last_lot)))).sum()
        assert which.sum() >= (near < rule.high).sum()
    assert taken == len(expected)


def test_u1_keeps_each_row_with_its_chance():
    X, y = problem(4000, 0.2)
    sampler = DistanceUnderSampler(method="u1", n_bins=4, svm=AXIS, random_state=3)
    kept, labels = sampler.fit_resample(X, y)
    assert (labels > 0).sum() == 800
    distances = np.abs(X[y < 0, 0])
    edges = np.linspace(distances.min(), distances.max(), 5)
    there = np.histogram(distances, edges)[0]
    stayed = np.histogram(np.abs(kept[labels < 0, 0]), edges)[0]
    for n, k, chance in zip(there, stayed, (1.0, 0.75, 0.5, 0.25), strict=True):
        assert abs(k - n * chance) <= 4 * np.sqrt(n * chance * (1 - chance)) + 1e-9


def test_auto_is_u1_below_ten_and_u2_above():
    for n_pos, method in ((21, "u1"), (20, "u2"), (19, "u2")):
        y = np.where(np.arange(200 + n_pos) < n_pos, 1, -1)
        X = np.random.default_rng(0).normal(size=(len(y), 2))
        auto, named = (
            DistanceUnderSampler(method=m, svm=AXIS, ratio=5, random_state=0).fit_resample(X, y)[0]
            for m in ("auto", method)
        )
        np.testing.assert_array_equal(auto, named)


@pytest.mark.parametrize("method", ["u1", "u2"])
def test_the_sample_does_not_depend_on_the_blocks(method):
    X, y = problem(rounded=True)
    sampler = DistanceUnderSampler(method=method, svm=AXIS, random_state=5)
    samples = []
    for n_blocks in (1, 2, 7):
        blocks = sampler.resample_blocks(LocalBlocks(into_blocks(Block.of(X, y), n_blocks)))
        samples.append(sorted(blocks.reduce(row_ids)["ids"]))
    assert samples[0] == samples[1] == samples[2]
    sampler.fit_resample(X, y)
    assert sampler.sample_indices_.tolist() == samples[0]
    assert clone(sampler).set_params(random_state=6).fit_resample(X, y)[0].shape != (0, 2)


def row_ids(block, memory):
    return memory, {"ids": block.row_id.tolist()}


def parts():
    X, y = problem(rounded=True)
    return into_blocks(Block.of(X, y), 3)


class Counting(LocalBlocks):
    """Blocks that know which steps read their rows."""

    read: list[str]

    def without_memory(self):
        return self

    def reduce(self, step, *args):
        if first_argument(step) != "number":
            self.read.append(step.__name__)
        return super().reduce(step, *args)


def test_two_passes_from_a_given_hyperplane():
    blocks = Counting(parts())
    blocks.read = []
    DistanceUnderSampler(method="u2", svm=AXIS, random_state=0).resample_blocks(blocks)
    assert blocks.read == ["measure_distances", "_view"]


@pytest.mark.parametrize(
    "svm", [None, SVC(), SVC(kernel="linear"), LogisticRegression(), LogisticRegression().fit(*problem())]
)
def test_whatever_has_a_decision_function_tells_the_distance(svm):
    X, y = problem()
    sampler = DistanceUnderSampler(svm=svm, random_state=0)
    kept, labels = sampler.fit_resample(X, y)
    distances = np.abs(sampler.rule_.model.decision_function(X))
    assert (labels > 0).sum() == 40
    assert 20 < (labels < 0).sum() < 400
    assert np.abs(sampler.rule_.model.decision_function(kept[labels < 0])).max() <= np.sort(distances[y < 0])[399]
    assert svm is None or svm is sampler.svm


def test_the_default_hyperplane_parts_lopsided_classes():
    """A support vector machine that counts rows would call all of these negative."""
    X, y = problem(4000, 0.01)
    sampler = DistanceUnderSampler(random_state=0)
    sampler.fit_resample(X, y)
    scores = sampler.rule_.model.decision_function(X)
    assert 0.5 < (scores[y > 0] > 0).mean() < 1
    assert 0.5 < (scores[y < 0] < 0).mean() < 1


def test_types_stay_what_they_are():
    X, y = problem(300, 0.1)
    sampler = DistanceUnderSampler(svm=AXIS, random_state=0)
    plain, labels = sampler.fit_resample(X, y)
    which = sampler.sample_indices_
    np.testing.assert_array_equal(plain, X[which])
    assert (np.diff(which) > 0).all()
    frame = pd.DataFrame(X, columns=["a", "b"])
    named, names = sampler.fit_resample(frame, pd.Series(np.where(y > 0, "rare", "usual")))
    pd.testing.assert_frame_equal(named, frame.iloc[which])
    assert names.tolist() == np.where(labels > 0, "rare", "usual").tolist()
    assert sampler.feature_names_in_.tolist() == ["a", "b"]
    sparse, _ = sampler.fit_resample(sp.csr_matrix(X), y)
    np.testing.assert_array_equal(sparse.toarray(), plain)


def test_the_smaller_class_is_kept_whatever_its_label():
    X, y = problem(300, 0.1)
    sampler = DistanceUnderSampler(svm=AXIS, random_state=0)
    kept, other = (sampler.fit_resample(X, labels)[1] for labels in (y, -y))
    np.testing.assert_array_equal(kept, -other)


def test_in_a_pipeline_of_imbalanced_learn():
    X, y = problem(300, 0.1)
    model = make_pipeline(StandardScaler(), DistanceUnderSampler(random_state=0), LogisticRegression()).fit(X, y)
    assert model.score(X, y) > 0.6


def test_rows_of_weight_0_are_not_there():
    X, y = problem(300, 0.1)
    weight = np.where(np.arange(300) % 2, 1.0, 0.0)
    kept = DistanceUnderSampler(svm=AXIS, random_state=0).resample_blocks(LocalBlocks([Block.of(X, y, weight=weight)]))
    assert all(i % 2 for i in kept.reduce(row_ids)["ids"])


def test_of_more_classes_each_is_sampled_against_the_smallest():
    X, y = problem(600, 0.1)
    three = np.where(y > 0, "rare", np.where(np.arange(600) % 3 == 0, "other", "usual"))
    sampler = DistanceUnderSampler(random_state=0)
    kept, labels = sampler.fit_resample(X, three)
    assert (labels == "rare").sum() == 60
    for name in ("other", "usual"):
        two = three[(three == "rare") | (three == name)]
        alone, of_two = DistanceUnderSampler(random_state=0).fit_resample(X[(three == "rare") | (three == name)], two)
        np.testing.assert_array_equal(kept[labels == name], alone[of_two == name])
        assert sampler.sampling_strategy_[name] == (labels == name).sum()
    assert set(sampler.rules_) == {"other", "usual"}
    assert not hasattr(sampler, "rule_")
    several = LogisticRegression().fit(X, three)
    with pytest.raises(InputError, match="fitted to more than two classes"):
        DistanceUnderSampler(svm=several).fit_resample(X, three)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_keep_their_type(kind):
    X, y = problem(300, 0.1)
    frame = pd.DataFrame({"a": X[:, 0].astype(kind), "b": np.arange(300)})
    for rows in (X.astype(kind), sp.csr_matrix(X.astype(kind)), frame):
        kept, _ = DistanceUnderSampler(random_state=0).fit_resample(rows, y)
        assert type(kept) is type(rows)
        assert (kept.dtypes.tolist() if rows is frame else kept.dtype) == ([kind, np.int64] if rows is frame else kind)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "u3"}, "unknown method 'u3'.*auto, u1, u2"),
        ({"n_bins": 1}, "n_bins must be .*at least 2.*; got 1"),
        ({"n_bins": 2.5}, "n_bins must be .*integer.*; got 2.5"),
        ({"ratio": 0.5}, "ratio must be .*at least 1.*; got 0.5"),
        ({"ratio": "all"}, "ratio must be .*; got 'all'"),
        ({"svm": StandardScaler()}, "classifier with decision_function"),
        ({"svm": Hyperplane(np.zeros(2), 1.0)}, "equally far from the hyperplane.*svm"),
        ({"svm": Hyperplane(np.array([np.inf, 0.0]), 1.0)}, "not all finite"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(InputError, match=message):
        DistanceUnderSampler(**parameters).fit_resample(*problem(300))


def test_bad_data():
    X, y = problem(300)
    with pytest.raises(InputError, match="1 classes in y"):
        DistanceUnderSampler().fit_resample(X, np.ones(300))
    with pytest.raises(InputError, match="one class only"):
        DistanceUnderSampler().resample_blocks(LocalBlocks([Block.of(X, np.ones(300))]))
    with pytest.raises(InputError, match="svm is not fitted, and the rows are in several blocks"):
        DistanceUnderSampler(svm=SVC()).resample_blocks(LocalBlocks(into_blocks(Block.of(X, y), 2)))
    with pytest.raises(InputError, match="equally far"):
        DistanceUnderSampler(method="u2", ratio=1, svm=AXIS).fit_resample(np.ones((300, 2)), y)


# ---- distance edges ----------------------------------------------------------------------------


def test_a_distance_on_the_edge_of_a_bin_belongs_to_the_nearer_one():
    rule = Rule(None, -1, 0.0, 10.0, 0, 10, 0)
    distances = np.array([0.0, 0.5, 1.0, np.nextafter(1.0, 2.0), 2.0, 9.0, np.nextafter(9.0, 10.0), 10.0])
    expected = 1.0 - np.array([0, 0, 0, 1, 1, 8, 9, 9]) / 10
    np.testing.assert_array_equal(rule.rates(distances), expected)
