from dataclasses import replace

import numpy as np
import pytest

from aucdist.data.block import Block
from aucdist.data.serialization import serialize
from aucdist.engine.blocks import LocalBlocks
from aucdist.errors import InputError
from aucdist.maps import MAPS, BinExpander, LeafExpander, NystroemMap, expander_of, map_from_bytes

EXPANDERS = {name: kind() for name, kind in MAPS.items()} | {
    "bins": BinExpander(bins=7, interactions=1),
    "nystroem": NystroemMap(landmarks=20),
    "leaves": LeafExpander(trees=4),
}


def rows(n=700):
    r = np.random.default_rng(0)
    X = r.normal(size=(n, 3))
    return Block.of(X, np.where(X[:, 0] * X[:, 1] > 0.0, 1, -1))


def fitted_map(name):
    if name == "leaves":
        pytest.importorskip("lightgbm")
    return EXPANDERS[name].fit_blocks(LocalBlocks([rows()]))


@pytest.mark.parametrize("name", EXPANDERS)
def test_a_map_is_read_back_to_the_last_bit(name):
    fitted, block = fitted_map(name), rows()
    again = map_from_bytes(serialize(fitted))
    first, second = fitted.map_block(block).rows, again.map_block(block).rows
    for part, other in zip(first, second, strict=True):
        for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (part, other)), strict=True):
            np.testing.assert_array_equal(a, b)
    assert again.names(["a", "b", "c"]) == fitted.names(["a", "b", "c"])


def test_a_damaged_map_is_refused():
    fitted = fitted_map("bins")
    bins = fitted.bins[0]
    for broken in (
        replace(fitted, n_features_in=4),
        replace(fitted, bins=(replace(bins, edges=bins.edges[::-1].copy()), *fitted.bins[1:])),
        replace(fitted, bins=(replace(bins, edges=bins.edges[1:]), *fitted.bins[1:])),
        replace(fitted, bins=(replace(bins, means=bins.means * np.nan), *fitted.bins[1:])),
        replace(fitted, missing=np.zeros(2, dtype=bool)),
        replace(fitted, interactions=np.array([[0, 7]])),
        replace(fitted, basis="steps"),
        replace(fitted, strength=-1.0),
        replace(fitted, bins=7),
    ):
        with pytest.raises(InputError):
            map_from_bytes(serialize(broken))
    with pytest.raises(InputError, match="no feature map, but Bins"):
        map_from_bytes(serialize(bins))
    with pytest.raises(InputError):
        map_from_bytes(b"something")
    kernel = fitted_map("nystroem")
    with pytest.raises(InputError):
        map_from_bytes(serialize(replace(kernel, directions=kernel.directions[..., np.newaxis])))
    with pytest.raises(InputError, match="different sizes"):
        map_from_bytes(serialize(replace(kernel, shift=kernel.shift[1:])))


def test_leaves_that_are_not_those_of_the_trees_are_refused():
    fitted = fitted_map("leaves")
    for lying in (
        replace(fitted, n_leaves=tuple(2 for _ in fitted.n_leaves)),
        replace(fitted, n_leaves=fitted.n_leaves[1:]),
        replace(fitted, used=(0, 4)),
        replace(fitted, used=(-1,)),
        replace(fitted, n_features_in=1),
        replace(fitted, model=7),
        replace(fitted, score_scale=-1.0),
        replace(fitted, score_scale=np.inf),
    ):
        with pytest.raises(InputError):
            map_from_bytes(serialize(lying))


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("bins", BinExpander()),
        ({"map": "bins", "interactions": 3, "basis": "hat"}, BinExpander(interactions=3, basis="hat")),
        (
            {"map": "bins", "pairs": 3, "pair_strength": 2.0},
            BinExpander(interactions=3, interaction_strength=2.0),
        ),  # 0.4.0
        ({"map": "nystroem"}, NystroemMap()),
        (LeafExpander(trees=3), LeafExpander(trees=3)),
    ],
)
def test_a_map_is_asked_for_in_several_ways(features, expected):
    expander = expander_of(features)
    assert type(expander) is type(expected)
    assert expander.get_params() == expected.get_params()
    assert expander_of(None) is None


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ("bin", "unknown feature map 'bin'. Did you mean 'bins'"),
        ({"bins": 3}, "features has no key `map`: give one of bins, nystroem, leaves"),
        ({"map": "bins", "bin": 3}, "unknown parameter of the feature map 'bins': 'bin'"),
        ({"map": "bins", "sparse_output": False}, "unknown parameter"),
        (
            {"map": "bins", "readable": True},
            r"'readable'. Did you mean \"{'map': 'auto', 'readable': True}\"\? Allowed: basis",
        ),
        ({"map": "leaves", "metric": "auc"}, r"'metric'. Did you mean \"{'map': 'auto', 'metric': ...}\"\? Allowed: "),
        ({"map": "bins", "bins": 1000}, "bins must be .*; got 1000"),
        (7, "features must be None, a name.*; got 7"),
        ({"map": ["bins"]}, "unknown feature map"),
    ],
)
def test_what_is_no_map_is_refused(features, message):
    with pytest.raises(InputError, match=message):
        expander_of(features)
