"""Leaves of a LightGBM model as codes: the weights of its leaves are solved again, with a certificate.

LightGBM grows the trees. What rows need is read from its text of the model by `aucdist.maps.forest`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from aucdist.data.block import Block
from aucdist.engine.blocks import Blocks
from aucdist.errors import InputError
from aucdist.extras import load_optional
from aucdist.kernels.codes import BinRows, CodeBasis
from aucdist.maps.base import Expander, FittedMap, check_integer, check_positive
from aucdist.maps.basis import Part, joined
from aucdist.maps.edges import draw_rows
from aucdist.maps.forest import Forest, leaf_counts, read_forest

MOST_ROWS = 2**18
"""The trees are grown on at most about so many rows of each class, which come to the client."""
MOST_LEAVES = 255
SPREAD = 10.0
"""A leaf's indicator has the value ``sqrt(SPREAD / trees)``."""


@dataclass(frozen=True, eq=False)
class LeafMap(FittedMap):
    """A forest whose leaves are codes.

    Attributes
    ----------
    n_features_in : int
    model : str
        LightGBM's own text of the model.
    n_leaves : tuple of int
        Of each tree.
    used : tuple of int
        The trees that have more than one leaf.
    """

    n_features_in: int
    model: str
    n_leaves: tuple[int, ...]
    used: tuple[int, ...]

    @cached_property
    def code_basis(self) -> CodeBasis:
        """An indicator of each leaf, as the kernels take it."""
        value = np.sqrt(SPREAD / max(len(self.used), 1))
        sizes = [self.n_leaves[tree] for tree in self.used]
        return joined([Part(value * np.eye(n), 0, tuple(f" leaf {k}" for k in range(n))) for n in sizes])

    @cached_property
    def forest(self) -> Forest:
        """The used trees."""
        return read_forest(self.model, self.used, self.n_features_in)

    def __getstate__(self) -> dict[str, object]:
        """Travel without what is made of the fields."""
        return {name: value for name, value in self.__dict__.items() if name not in ("forest", "code_basis")}

    @property
    def n_features_out(self) -> int:
        """Number of leaves."""
        return int(self.code_basis.n_features)

    def encode(self, block: Block) -> Block:
        """Return the block with a code for each tree."""
        self.check_width(block)
        return replace(block, rows=BinRows(self.forest.codes(block.X), self.code_basis))

    def check(self) -> None:
        """Raise an InputError if the parts do not fit together."""
        sizes = leaf_counts(self.model)
        if tuple(self.n_leaves) != sizes or not all(1 <= n <= MOST_LEAVES for n in sizes):
            raise InputError("the leaves are not those of the trees")
        if not all(0 <= k < len(sizes) for k in self.used):
            raise InputError("the trees in use are not those of the model")
        read_forest(self.model, self.used, self.n_features_in)

    def names(self, features: Sequence[str]) -> list[str]:
        """Return a name for each leaf."""
        return [f"tree {tree} leaf {k}" for tree in self.used for k in range(self.n_leaves[tree])]


class LeafExpander(Expander):
    """Expand rows into the leaves of trees that LightGBM grows, one indicator for each.

    A linear model of them is a forest whose leaves' values are solved again, all at once: after He et al., "Practical lessons
    from predicting clicks on ads at Facebook" (ADKDD 2014). Its certificate speaks of the weights given the trees, not of them.
    To fit it needs the extra ``aucdist[trees]``, to score rows it does not.

    Parameters
    ----------
    trees : int, default=100
    leaves : int, default=31
        Of each tree, at most 255.
    learning_rate : float, default=0.1
    min_rows : int, default=20
        Of a leaf.
    random_state : int, default=0
    sparse_output : bool, default=True
        Whether `transform` returns a csr_matrix.

    Attributes
    ----------
    map_ : LeafMap
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names.
    """

    needs_classes = True
    allows_missing = True

    def __init__(
        self,
        *,
        trees: int = 100,
        leaves: int = 31,
        learning_rate: float = 0.1,
        min_rows: int = 20,
        random_state: int = 0,
        sparse_output: bool = True,
    ):
        self.trees = trees
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.min_rows = min_rows
        self.random_state = random_state
        self.sparse_output = sparse_output

    def check_parameters(self) -> None:
        """Raise an InputError for a parameter outside its range."""
        bounds = {
            "trees": (1, 10_000),
            "leaves": (2, MOST_LEAVES),
            "min_rows": (1, 2**31 - 1),
            "random_state": (0, 2**31 - 1),
        }
        for name, (least, most) in bounds.items():
            check_integer(name, getattr(self, name), least, most)
        check_positive("learning_rate", self.learning_rate, 1.0)

    def fit_blocks(self, blocks: Blocks) -> LeafMap:
        """Return the map fitted to blocks of rows: to all of them, or to a sample that is drawn by row id."""
        self.check_parameters()
        lightgbm = load_optional("lightgbm")
        drawn = draw_rows(blocks, MOST_ROWS)
        options = {
            "objective": "binary", "num_leaves": int(self.leaves), "learning_rate": float(self.learning_rate),
            "min_data_in_leaf": int(self.min_rows), "seed": int(self.random_state), "deterministic": True,
            "force_row_wise": True, "num_threads": 1, "verbosity": -1,
        }  # fmt: skip
        data = lightgbm.Dataset(drawn.X, (drawn.y > 0).astype(np.float64), weight=drawn.weights())
        text = lightgbm.train(options, data, int(self.trees)).model_to_string()
        counts = leaf_counts(text)
        return LeafMap(blocks.n_features, text, counts, tuple(k for k, n in enumerate(counts) if n > 1))
