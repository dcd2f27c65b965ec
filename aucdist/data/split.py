"""Which rows are kept for the test."""

import numpy as np

from aucdist.data.block import Block
from aucdist.errors import InputError


def split(block: Block, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Choose test rows, the same share of each class.

    Each row gets a random number from its row id and the seed; the rows of a class with the smallest numbers are the
    test rows. So the choice depends neither on the order of the rows nor on how they are dealt out to blocks later.

    Parameters
    ----------
    block : Block
        All rows of the data set.
    test_fraction : float
        Share of each class, between 0 and 1. Of each class at least one row goes to either side.
    seed : int
        Any integer.

    Returns
    -------
    train, test : ndarray of int64
        Positions in the block, ascending.

    Raises
    ------
    InputError
        If the fraction is not between 0 and 1, or if a class has fewer than two rows.
    """
    if not 0 < test_fraction < 1:
        raise InputError(f"the share of test rows is {test_fraction}; it must lie between 0 and 1")
    number = scrambled(block.row_id, seed)
    is_test = np.zeros(block.n_samples, dtype=bool)
    for label, called in ((1, "positive"), (-1, "negative")):
        of_class = np.flatnonzero(block.y == label)
        if len(of_class) < 2:
            raise InputError(f"{len(of_class)} {called} rows; a split into training and test rows needs at least two")
        n_test = min(max(round(test_fraction * len(of_class)), 1), len(of_class) - 1)
        is_test[of_class[np.argsort(number[of_class], kind="stable")[:n_test]]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def scrambled(row_id: np.ndarray, seed: int) -> np.ndarray:
    """Return a random number for each row, uint64: the finisher of SplitMix64, so that no two ids share one."""
    return _mixed(row_id.astype(np.uint64) ^ _mixed(np.array([seed % 2**64], dtype=np.uint64)))


def _mixed(z: np.ndarray) -> np.ndarray:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
