"""`partial_fit`: learning from rows that come batch after batch, by the solvers that see each row once."""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from aucdist.data.block import Block
from aucdist.engine.blocks import LocalBlocks, block_seed
from aucdist.errors import InputError
from aucdist.estimators.ranking import RankingClassifier
from aucdist.estimators.scores import scores_of
from aucdist.estimators.validation import ACCEPTED_ROWS, labelled_block, two_classes, without_index
from aucdist.metrics.auc import best_threshold
from aucdist.metrics.counts import ScoreCounts
from aucdist.solvers.pairs.oam import BUFFER_SIZE, OamState, oam_start, oam_update
from aucdist.solvers.pairs.sampling import ResumableRound
from aucdist.solvers.pairs.sgd import Progress, msgd


class OnlineClassifier(RankingClassifier):
    """A linear classifier some of whose solvers can be fed batch by batch: those that declare how they `learn`."""

    @property
    def _is_online(self) -> bool:
        return self.solver in self.solvers and self.solvers[self.solver].learn is not None

    @available_if(lambda model: model._is_online)
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
        if self.features is not None:
            raise InputError("features needs all rows at once: take `fit`, or map each batch before partial_fit")
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise InputError("the first call of partial_fit needs `classes`: both labels, the larger one positive")
        block = self._batch(X, y, sample_weight, classes, first=first)
        stream = getattr(self, "stream_", None)
        if stream is None or not np.array_equal(stream.w, self.coef_[0]):  # none yet, or a `fit` came between
            stream = self.coef_[0] if hasattr(self, "coef_") else np.zeros(block.n_features)
        learn = self.solvers[self.solver].learn
        assert learn is not None  # or the method would not be there
        self.stream_, self.threshold_ = learn(self, stream, block)
        self.coef_ = self.stream_.w[np.newaxis, :]
        self.intercept_ = np.array([-self.threshold_])
        for stale in ("certificate_", "_records", "n_passes_"):  # of a `fit` before
            self.__dict__.pop(stale, None)
        return self

    def _batch(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool) -> Block:
        """Return the rows of a batch, checked against `classes` and against the batches before."""
        X, y = validate_data(self, without_index(X), y, reset=first, **ACCEPTED_ROWS)
        known = self.classes_ if classes is None else two_classes(np.asarray(classes))
        if not first and not np.array_equal(known, self.classes_):
            raise InputError(f"classes are {known}, but the first call had {self.classes_}")
        strange = ~np.isin(y, known)
        if strange.any():
            raise InputError(f"label {y[strange][0].item()!r} is not one of the classes {known}")
        self.classes_ = known
        return labelled_block(X, y, known, sample_weight)


def learn_pairs_in_order(model: Any, stream: Any, block: Block) -> tuple[OamState, float]:
    """Let the rows of a batch meet the buffered rows of the other class, in their order: ``oam-inf``, ``oam-seq``, ``oam-gra``.

    Batch after batch gives the same weights, to the last bit, as one `fit` of all rows with the same `n_pairs`. Without
    `n_pairs` the number of pairs of all rows so far sets the size of the steps, those of the batch included. The threshold is
    set on the buffered rows, a uniform sample of each class seen so far.

    Parameters
    ----------
    model : PairwiseHingeClassifier
    stream : OamState, or ndarray of shape (n_features,), float64
        What the last call returned, or weights.
    block : Block
    """
    if not isinstance(stream, OamState):
        stream = oam_start(stream if isinstance(stream, np.ndarray) else stream.w, block_seed(_seed(model), 0, 0))
    n_pairs = model.n_pairs
    if n_pairs is None:
        # Rows of one class have no pairs, and take no steps of whatever size.
        n_pairs = float(np.prod(stream.weight_with(block))) or 1.0
    buffered = "buffer_size" in model.solvers[model.solver].options
    capacity = (model.buffer_size or BUFFER_SIZE) if buffered else None
    stream, _ = oam_update(stream, block, model.solver, 1.0 / (model.lam * n_pairs), capacity)
    return stream, 0.0 if stream.buffer is None else _threshold(stream.buffer, stream.w)


def learn_random_pairs(model: Any, stream: Any, block: Block) -> tuple[Progress, float]:
    """Take steps along pairs drawn within a batch, as many as `steps` or `epochs` say of it: ``msgd``.

    The size of the steps goes on from batch to batch; rows of different batches are never paired. A batch of one class changes
    nothing. The threshold is set on the batch.

    Parameters
    ----------
    model : PairwiseHingeClassifier
    stream : Progress, or ndarray of shape (n_features,), float64
        What the last call returned, or weights, which must be 0.
    block : Block
    """
    if not isinstance(stream, Progress):
        w = stream if isinstance(stream, np.ndarray) else stream.w
        if w.any():
            raise InputError(
                "msgd cannot go on from weights alone, for its steps depend on how many there were: call partial_fit "
                "on a model that is not fitted"
            )
        stream = Progress(w, 0)
    if (block.y > 0).all() or (block.y < 0).all():
        return stream, getattr(model, "threshold_", 0.0)
    options = {name: getattr(model, name) for name in ("steps", "epochs")}
    seed = block_seed(_seed(model), int(stream.steps), 0)
    progress = stream
    for state in msgd(LocalBlocks([block]), model.lam, stream if stream.steps > 0 else None, seed=seed, **options):
        assert isinstance(state, ResumableRound)
        progress = state.resume()
    return progress, _threshold(block, progress.w)


def finite(stream: Any, eta: float | None) -> Any:
    """Return what is remembered after a batch, unless its weights are not finite.

    Raises
    ------
    InputError
        If the steps have diverged.
    """
    if not np.isfinite(stream.w).all():
        raise InputError(f"the steps diverged in this batch, so coef_ stays what it was; eta={eta} is too long")
    return stream


def _seed(model: Any) -> int:
    random = model.solvers[model.solver].random
    return int(check_random_state(model.random_state).randint(2**31)) if random else 0


def _threshold(block: Block, w: np.ndarray) -> float:
    """Return the threshold with the largest G-mean on these rows, or 0 where they are of one class."""
    if not ((block.y > 0).any() and (block.y < 0).any()):
        return 0.0
    return float(best_threshold(ScoreCounts.from_scores(block.y, scores_of(block.X, w), block.weight)))
