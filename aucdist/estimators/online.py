"""`partial_fit`: learning from rows that come batch after batch, by the solvers that see each row once."""

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, validate_data

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.estimators.base import ROWS, LinearClassifier, _two_classes
from aucdist.estimators.scores import scores_of
from aucdist.metrics.auc import best_threshold
from aucdist.metrics.counts import ScoreCounts
from aucdist.solvers.pairs.oam import BUFFER_SIZE, Stream, begin, learn
from aucdist.solvers.pairs.sgd import Progress, msgd


def _is_online(model: "OnlineClassifier") -> bool:
    return model.solver in model.online_solvers


class OnlineClassifier(LinearClassifier):
    """A linear classifier some of whose solvers can be fed batch by batch. A subclass names them and says how they learn."""

    online_solvers: ClassVar[tuple[str, ...]]

    def _learn(self, stream: Any, block: Block) -> tuple[Any, float]:
        """Return what is remembered after a batch, with its weights as ``.w``, and where scores are parted.

        Parameters
        ----------
        stream : object
            What the last call returned, or weights to start from, float64 of shape (n_features,).
        block : Block
            The batch, rows in their order.
        """
        raise NotImplementedError

    @available_if(_is_online)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from the rows of a batch in their order, then wait for more.

        There is no certificate, for nobody holds all pairs. After a `fit` it goes on from its weights, but remembers none of its
        rows.

        Parameters
        ----------
        X : array-like, sparse matrix or array, or DataFrame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            One class alone is legal.
        classes : array-like of shape (2,)
            Both labels, the larger one positive. Needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self

        Raises
        ------
        InputError
            A ValueError: where the first call lacks `classes`, a label is not one of them, or the solver lacks a parameter.
        """
        self.check_parameters()
        if self.calibration is not None:
            raise InputError("calibration needs all rows at once: take `fit`, or calibration=None with partial_fit")
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise InputError("the first call of partial_fit needs `classes`: both labels, the larger one positive")
        block = self._batch(X, y, sample_weight, classes, first=first)
        stream = getattr(self, "stream_", None)
        if stream is None or not np.array_equal(stream.w, self.coef_[0]):  # none yet, or a `fit` came between
            stream = self.coef_[0] if hasattr(self, "coef_") else np.zeros(block.n_features)
        self.stream_, self.threshold_ = self._learn(stream, block)
        self.coef_ = self.stream_.w[np.newaxis, :]
        self.intercept_ = np.array([-self.threshold_])
        for stale in ("certificate_", "_records", "n_passes_"):  # of a `fit` before
            self.__dict__.pop(stale, None)
        return self

    def _batch(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool) -> Block:
        X, y = validate_data(self, X, y, reset=first, **ROWS)
        known = self.classes_ if classes is None else _two_classes(np.asarray(classes))
        if not first and not np.array_equal(known, self.classes_):
            raise InputError(f"classes are {known}, but the first call had {self.classes_}")
        strange = ~np.isin(y, known)
        if strange.any():
            raise InputError(f"label {y[strange][0].item()!r} is not one of the classes {known}")
        self.classes_ = known
        labels = np.where(y == self.classes_[1], 1, -1)
        if sample_weight is None:
            return Block.of(X, labels)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return Block.of(X[weight > 0], labels[weight > 0], weight=weight[weight > 0])


class OnlinePairs(OnlineClassifier):
    """The online solvers of the pairwise hinge.

    ``oam-inf``, ``oam-seq``, ``oam-gra``: batch after batch gives the same weights, to the last bit, as one `fit` of all rows
    with the same `n_pairs`. The threshold is set on the buffered rows, a uniform sample of each class seen so far.

    ``msgd``: draws its pairs within the batch, as many as `steps` or `epochs` say of it, and goes on with the size of its steps;
    rows of different batches do not meet. A batch of one class teaches nothing. The threshold is set on the batch.
    """

    online_solvers = ("oam-inf", "oam-seq", "oam-gra", "msgd")
    n_pairs: float | None
    buffer_size: int | None

    def _learn(self, stream: Stream | Progress | np.ndarray, block: Block) -> tuple[Stream | Progress, float]:
        if self.solver == "msgd":
            return self._draw(stream, block)
        if self.n_pairs is None:
            raise InputError(
                "partial_fit needs n_pairs: how many positive-negative pairs all rows to come will about make; with lam it "
                "sets the size of the steps"
            )
        if not isinstance(stream, Stream):
            stream = begin(stream if isinstance(stream, np.ndarray) else stream.w, block_seed(self._seed(), 0, 0))
        capacity = None if self.solver == "oam-inf" else self.buffer_size or BUFFER_SIZE
        stream, _ = learn(stream, block, self.solver, 1.0 / (self.lam * self.n_pairs), capacity)
        return stream, 0.0 if stream.buffer is None else _threshold(stream.buffer, stream.w)

    def _draw(self, stream: Stream | Progress | np.ndarray, block: Block) -> tuple[Progress, float]:
        """Go on with msgd on the pairs of a batch."""
        if not isinstance(stream, Progress):
            w = stream if isinstance(stream, np.ndarray) else stream.w
            if w.any():
                raise InputError(
                    "msgd cannot go on from weights alone, for its steps depend on how many there were: call partial_fit "
                    "on a model that is not fitted"
                )
            stream = Progress(w, 0)
        if (block.y > 0).all() or (block.y < 0).all():
            return stream, getattr(self, "threshold_", 0.0)
        options = {name: getattr(self, name) for name in ("steps", "epochs")}
        seed = block_seed(self._seed(), int(stream.steps), 0)
        progress = stream
        for state in msgd(LocalBlocks([block]), self.lam, stream if stream.steps > 0 else None, seed=seed, **options):
            progress = state.resume()  # type: ignore[attr-defined]
        return progress, _threshold(block, progress.w)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31)) if self.solvers[self.solver].random else 0


def _threshold(block: Block, w: np.ndarray) -> float:
    """Return the threshold with the largest G-mean on these rows, or 0 where they are of one class."""
    if not ((block.y > 0).any() and (block.y < 0).any()):
        return 0.0
    return float(best_threshold(ScoreCounts.from_scores(block.y, scores_of(block.X, w), block.weight)))
