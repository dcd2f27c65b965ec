"""A random order of n things that needs no list of them: each worker computes the places of its own rows."""

import numpy as np

from aucdist.data.split import scrambled

ROUNDS = 6


def permuted(numbers: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return the place of each number in a random order of 0, ..., n - 1.

    A Feistel network over the bits of a number is a permutation whatever its round function is; a number that it carries
    beyond n goes through it again until it comes back (cycle walking, as in Black and Rogaway, Ciphers with arbitrary
    finite domains, 2002; their prefix cipher is not needed, and the round function is a hash and not a cipher). At most
    three numbers in four lie beyond, so that takes four times on average at the worst.

    `numbers`: from 0 to n - 1.
    `n`: at most 2**62.
    Returns ndarray of int64: from 0 to n - 1; different numbers have different places.
    """
    half = max(1, ((n - 1).bit_length() + 1) // 2)
    keys = scrambled(np.arange(ROUNDS), seed)
    places = numbers.astype(np.uint64)
    walking = np.arange(len(places))
    while len(walking):
        places[walking] = _encrypted(places[walking], np.uint64(half), keys)
        walking = walking[places[walking] >= np.uint64(n)]
    return places.astype(np.int64)


def _encrypted(x: np.ndarray, half: np.uint64, keys: np.ndarray) -> np.ndarray:
    """Return the numbers of 2 * half bits after all rounds: the halves change places, one mixed with a hash of the other."""
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = x >> half, x & mask
    for key in keys:
        left, right = right, left ^ (scrambled(right ^ key, 0) & mask)
    mixed: np.ndarray = (left << half) | right
    return mixed
