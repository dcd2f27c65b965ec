"""MWMOTE: oversampling with synthetic rows of the minority class where it is hard to separate from the majority class.

After Barua, Islam, Yao & Murase, "MWMOTE: majority weighted minority oversampling technique for imbalanced data set learning"
(IEEE Transactions on Knowledge and Data Engineering 26(2), 2014), algorithm 1 with its parameters. Comments in the code
number the steps as the algorithm does.
"""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, check_random_state

from aucdist.errors import InputError
from aucdist.parameters import Constraints, Number, Seed, above_0, count
from aucdist.sampling.base import Sampler, appended, appended_labels


class MWMOTE(Sampler):
    """Oversample the minority class with synthetic rows, each between two rows of the same minority cluster.

    If there are more than two classes, each class but the largest is oversampled in turn, and all other classes together count
    as the majority. Distances are Euclidean, so scale the features. Sparse rows are made dense inside.

    Parameters
    ----------
    sampling_strategy : "auto" or float, default="auto"
        Ratio of minority rows (original and synthetic) to the rows of the largest class after sampling; ``"auto"`` means 1.
    k1 : int, default=5
        A minority row without another minority row among its k1 nearest neighbours counts as noise.
    k2 : int, default=3
        The border consists of the k2 majority rows nearest to each minority row that is not noise.
    k3 : int or None, default=None
        Synthetic rows start from the k3 minority rows nearest to each border row; None means half of the minority rows.
    c_f_th : float, default=5
        Upper limit of the closeness (the number of features over the distance), the paper's C_f(th).
    c_max : float, default=2
        The weight of the largest closeness, the paper's CMAX.
    c_p : float, default=3
        Clusters are merged if their distance is at most this times the mean nearest-neighbour distance.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    sampling_strategy_ : dict
        For each class that is oversampled, the number of synthetic rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X has column names.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucdist.sampling import MWMOTE
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> X_more, y_more = MWMOTE(random_state=0).fit_resample(X, y)
    >>> np.bincount(y).tolist(), np.bincount(y_more).tolist()
    ([212, 357], [357, 357])
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "sampling_strategy": Number("above 0 and up to 1", lambda v: 0 < v <= 1, words=("auto",)),
        "k1": count(),
        "k2": count(),
        "k3": count(optional=True),
        "c_f_th": above_0(),
        "c_max": above_0(),
        "c_p": above_0(),
        "random_state": Seed(),
    }

    def __init__(
        self,
        *,
        sampling_strategy: str | float = "auto",
        k1: int = 5,
        k2: int = 3,
        k3: int | None = None,
        c_f_th: float = 5.0,
        c_max: float = 2.0,
        c_p: float = 3.0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.sampling_strategy = sampling_strategy
        self.k1 = k1
        self.k2 = k2
        self.k3 = k3
        self.c_f_th = c_f_th
        self.c_max = c_max
        self.c_p = c_p
        self.random_state = random_state

    def _resample(self, X: Any, y: Any, rows: Any, labels: np.ndarray, classes: np.ndarray) -> tuple[Any, Any]:
        dense = (rows.toarray() if sp.issparse(rows) else rows).astype(np.float64, copy=False)
        largest = int((labels == classes[-1]).sum())
        share = 1.0 if isinstance(self.sampling_strategy, str) else self.sampling_strategy
        random = check_random_state(self.random_state)
        self.sampling_strategy_, made, sources = {}, [dense[:0]], [np.zeros(0, dtype=np.int64)]
        for label in classes[:-1]:
            small = np.flatnonzero(labels == label)
            n_new = max(0, round(share * largest) - len(small))
            self.sampling_strategy_[label.item() if hasattr(label, "item") else label] = n_new
            if n_new:
                made.append(self._made(dense, small, n_new, random))
                sources.append(np.full(n_new, small[0]))
        # A label, or a one-hot row, is that of a row of the class.
        new_labels = _safe_indexing(np.asarray(y), np.concatenate(sources))
        return appended(X, np.vstack(made).astype(rows.dtype, copy=False)), appended_labels(y, new_labels)

    def _made(self, rows: np.ndarray, small: np.ndarray, n_new: int, random: np.random.RandomState) -> np.ndarray:
        """Return the synthetic rows; `small` holds the positions of the minority rows."""
        ours = rows[small]
        weights, kept = self._weights(rows, small)
        cluster = self._clusters(ours, kept)  # 10
        starts = random.choice(len(small), size=n_new, p=weights / weights.sum())  # 9, 11
        members = [np.flatnonzero(cluster == number) for number in range(cluster.max() + 1)]
        ends = [members[cluster[start]][random.randint(len(members[cluster[start]]))] for start in starts]
        shares = random.uniform(size=(n_new, 1))
        return ours[starts] + shares * (ours[ends] - ours[starts])

    def _weights(self, rows: np.ndarray, small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each minority row's weight as a start, and which minority rows are not noise."""
        from sklearn.neighbors import NearestNeighbors

        ours, others = rows[small], np.delete(rows, small, axis=0)
        k3 = len(small) // 2 if self.k3 is None else self.k3
        _enough("neighbours (k1) and itself", self.k1 + 1, len(rows), "")
        _enough("neighbours (k2)", self.k2, len(others), " of the larger class")
        _enough("neighbours (k3)", max(k3, 2 if self.k3 is None else 1), len(small), " of the smaller class")
        kept = self._no_noise(rows, small)  # 1, 2
        nearest = NearestNeighbors(n_neighbors=self.k2).fit(others).kneighbors(ours[kept], return_distance=False)  # 3
        border = others[np.unique(nearest)]  # 4
        apart, starts = NearestNeighbors(n_neighbors=k3).fit(ours).kneighbors(border)  # 5, 6
        with np.errstate(divide="ignore"):  # equal rows of both classes are as close as can be
            closeness = np.minimum(rows.shape[1] / apart, self.c_f_th) * (self.c_max / self.c_f_th)
        density = closeness / closeness.sum(axis=1, keepdims=True)
        weights = np.zeros(len(small))
        np.add.at(weights, starts, closeness * density)  # 7, 8
        return weights, kept

    def _no_noise(self, rows: np.ndarray, small: np.ndarray) -> np.ndarray:
        """Return which minority rows have another minority row among their nearest neighbours."""
        from sklearn.neighbors import NearestNeighbors

        around = NearestNeighbors(n_neighbors=self.k1 + 1).fit(rows).kneighbors(rows[small], return_distance=False)
        other = around != small[:, np.newaxis]
        other[other.all(axis=1), -1] = False  # among equal rows a row need not be its own neighbour
        kept = (np.isin(around, small) & other).any(axis=1)
        if not kept.any():
            raise InputError(
                f"no row of the smaller class ({len(small)} rows) has one of its own among its {self.k1} nearest "
                "neighbours, so that all of them count as noise: use a larger k1"
            )
        return kept

    def _clusters(self, ours: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Return the number of each row's cluster, from 0, by average linkage."""
        if len(ours) == 1:
            return np.zeros(1, dtype=np.int64)
        from scipy.cluster.hierarchy import fcluster, linkage
        from scipy.spatial.distance import pdist
        from sklearn.neighbors import NearestNeighbors

        clean = ours[kept]
        mean = 0.0  # a single row has no neighbour; then no clusters are merged
        if len(clean) > 1:
            mean = float(NearestNeighbors(n_neighbors=1).fit(clean).kneighbors()[0].mean())
        numbers: np.ndarray = fcluster(linkage(pdist(ours), "average"), self.c_p * mean, criterion="distance")
        return numbers.astype(np.int64) - 1


def _enough(what: str, needed: int, there: int, of_class: str) -> None:
    if there < needed:
        raise InputError(
            f"{needed} rows{of_class} are needed as {what}, but there are {there}: use fewer, or more data"
        )
