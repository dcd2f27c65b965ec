"""Which fold a row is in: decided by its id, its class and a seed, wherever it lies."""

import numpy as np

from aucdist.data.split import scrambled
from aucdist.errors import InputError


def fold_numbers(row_id: np.ndarray, y: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """Deal rows out to folds, each class evenly.

    Each row gets a random number from its id and the seed; the rows of a class are dealt out in the order of these numbers. So
    neither the order of the rows nor how they are cut into blocks changes a row's fold, and another seed gives another
    partition. The folds' sizes differ by one row at most, and so do their rows of each class.

    Parameters
    ----------
    row_id : ndarray of shape (n_samples,), int64
        The ids of all rows, each once.
    y : ndarray of shape (n_samples,)
        Labels, -1 or +1.
    n_folds : int
        At least 2.
    seed : int
        Any integer.

    Returns
    -------
    ndarray of shape (n_samples,), int64
        0 to n_folds - 1 for each row.

    Raises
    ------
    InputError
        If there are fewer than two folds, or fewer rows of a class than folds.
    """
    if n_folds < 2:
        raise InputError(f"n_folds is {n_folds}; at least 2 are needed")
    number = scrambled(row_id, seed)
    fold = np.empty(len(y), dtype=np.int64)
    dealt = 0
    for label, called in ((1, "positive"), (-1, "negative")):
        of_class = np.flatnonzero(y == label)
        if len(of_class) < n_folds:
            raise InputError(f"{len(of_class)} {called} rows cannot be dealt out to {n_folds} folds, one each at least")
        # The negatives go on where the positives stopped: otherwise the first folds would get the odd rows of both.
        fold[of_class[np.argsort(number[of_class])]] = (dealt + np.arange(len(of_class))) % n_folds
        dealt += len(of_class)
    return fold


def arrival(row_id: np.ndarray, seed: int) -> np.ndarray:
    """Return the positions of the rows in a random order that depends on their ids and the seed alone: how they would arrive.

    Parameters
    ----------
    row_id : ndarray of shape (n_samples,), int64
    seed : int

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    return np.argsort(scrambled(row_id, seed))
