"""Random numbers for kernels: the splitmix64 generator, unbiased integers, and permutations that are not stored.

Each function takes the state of the generator and returns the next one. So a kernel keeps its own state, and the same seed
gives the same numbers everywhere::

    state = u64(seed)                       # from `engine.blocks.block_seed`
    state, i = below(state, n)              # int64, 0 <= i < n
    state, u = uniform01(state)             # float64, 0 <= u < 1
    state = fill_normal(state, out)         # float64, standard normal

``stream(seed, t)`` is a separate state for every t, for random numbers that belong to step t whatever was drawn before. The t-th
element of a random permutation of n elements, which may be too many to store, is ``permuted(order, t, n)`` after
``new_order(key, n, order)``.

The generator and its constants are those of Steele, Lea & Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
Integers are drawn by the multiplication of Lemire, "Fast random integer generation in an interval" (2019).

In Numba, the sum of a uint64 and an int64 is a float64, and NumPy warns of every overflow. So every integer in this module is
a ``u64(...)``: a uint64 that wraps around in compiled code, and a masked Python integer with ``NUMBA_DISABLE_JIT=1``. Integers
that are returned to kernels are signed.
"""

import numpy as np
from numba.extending import overload
from numpy import ndarray

from aucdist.kernels.compiling import kernel

GOLDEN = 0x9E3779B97F4A7C15
HALF = 32
LOW_HALF = 0xFFFFFFFF
ORDER_SIZE = 2 + 8
"""The number of constants of an order: two that depend on the length, and one for each of 8 rounds. After 6 rounds, short
permutations are not yet uniform."""


def u64(value):
    """Return the integer modulo 2**64: a uint64 when compiled, an int in plain Python."""
    return int(value) & 0xFFFFFFFFFFFFFFFF


def i64(value):
    """Return a u64 below 2**63 as a signed integer for counting and indexing."""
    return int(value)


@overload(u64, jit_options={"nogil": True})
def _u64_compiled(value):
    return lambda value: np.uint64(value)


@overload(i64, jit_options={"nogil": True})
def _i64_compiled(value):
    return lambda value: np.int64(value)


@kernel
def mix(value):
    """Return 64 pseudorandom bits from a u64, by a bijection."""
    value = u64(value)
    value = u64((value ^ (value >> u64(30))) * u64(0xBF58476D1CE4E5B9))
    value = u64((value ^ (value >> u64(27))) * u64(0x94D049BB133111EB))
    return value ^ (value >> u64(31))


@kernel
def next_state(state):
    """Return the next state. The next 64 bits of the generator are ``mix(next_state(state))``."""
    return u64(u64(state) + u64(GOLDEN))


@kernel
def stream(seed, t):
    """Return the state of step t, which depends on the seed and t only."""
    return mix(u64(seed) + u64(u64(t) * u64(GOLDEN)))


@kernel
def uniform01(state):
    """Return the next state and a uniform float64 in [0, 1), a multiple of 2**-53."""
    state = next_state(state)
    return state, i64(mix(state) >> u64(11)) * 2.0**-53


@kernel
def fill_normal(seed, out):
    """Fill out, float64 of shape (n,), with independent standard normal numbers by the Box-Muller transform; return the state."""
    state = u64(seed)
    n = out.shape[0]
    for k in range(0, n, 2):
        state, u = uniform01(state)
        state, v = uniform01(state)
        length = np.sqrt(-2.0 * np.log(1.0 - u))  # 1 - u is never 0
        out[k] = length * np.cos(2.0 * np.pi * v)
        if k + 1 < n:
            out[k + 1] = length * np.sin(2.0 * np.pi * v)
    return state


@kernel
def high_product(a, b):
    """Return the upper 64 bits of the 128-bit product of a and b, both u64."""
    a, b = u64(a), u64(b)
    a_low, a_high = a & u64(LOW_HALF), a >> u64(HALF)
    b_low, b_high = b & u64(LOW_HALF), b >> u64(HALF)
    middle = u64(a_high * b_low + ((a_low * b_low) >> u64(HALF)))
    other = u64(a_low * b_high + (middle & u64(LOW_HALF)))
    return u64(a_high * b_high + (middle >> u64(HALF)) + (other >> u64(HALF)))


@kernel
def below(state, n):
    """Return the next state and an integer from 0, ..., n - 1, exactly uniform.

    Parameters
    ----------
    state : u64
        The state of the generator.
    n : int
        1 to 2**63 - 1.
    """
    n = u64(n)
    state = next_state(state)
    bits = mix(state)
    if u64(bits * n) < n:
        # 2**64 mod n values are rejected, so that all results are equally likely.
        surplus = u64(u64(0) - n) % n
        while u64(bits * n) < surplus:
            state = next_state(state)
            bits = mix(state)
    return state, i64(high_product(bits, n))


@kernel
def shuffle(seed, out):
    """Write a random permutation of 0, ..., n - 1 into out, int64 of shape (n,)."""
    state = u64(seed)
    for t in range(out.shape[0]):
        state, j = below(state, t + 1)
        out[t] = out[j]
        out[j] = t


@kernel
def new_order(key, n, order):
    """Prepare the random permutation of 0, ..., n - 1 that belongs to the key, for `permuted`.

    Parameters
    ----------
    key : int
        Any integer; different keys give different permutations.
    n : int
        1 to 2**63 - 1.
    order : ndarray of shape (ORDER_SIZE,), uint64
        Written: a mask of as many ones as n - 1 has bits, half that number of bits, and the multiplier of each round.
    """
    last, mask, n_bits = u64(n) - u64(1), u64(0), u64(0)
    while mask < last:
        mask = (mask << u64(1)) | u64(1)
        n_bits += u64(1)
    order[0], order[1] = mask, (n_bits + u64(1)) >> u64(1)
    state = u64(key)
    for r in range(2, ORDER_SIZE):
        state = next_state(state)
        order[r] = mix(state)


@kernel
def permuted(order, t, n):
    """Return element t of a random permutation.

    The function is a bijection of the integers with as many bits as n - 1, because each of its steps is invertible: adding,
    multiplying by an odd number, xor with the upper half of the bits. It is repeated until the result is below n (cycle
    walking), which makes it a bijection of 0, ..., n - 1. Fewer than two repetitions are needed on average.

    Parameters
    ----------
    order : ndarray of shape (ORDER_SIZE,), uint64
        Result of `new_order` with the same n.
    t : int
        0 to n - 1.
    n : int
        1 to 2**63 - 1.
    """
    n, value, mask, shift = u64(n), u64(t), u64(order[0]), u64(order[1])
    while True:
        for r in range(2, ORDER_SIZE):
            bits = u64(order[r])
            value = u64((value + (bits >> u64(HALF))) * (bits | u64(1))) & mask
            value ^= value >> shift
        if value < n:
            return i64(value)


def hash_ids(row_id: ndarray, seed: int) -> ndarray:
    """Return a random number for each row, uint64, by the finaliser of SplitMix64: different ids get different numbers."""
    return _mix_array(row_id.astype(np.uint64) ^ _mix_array(np.array([seed % 2**64], dtype=np.uint64)))


def _mix_array(z: ndarray) -> ndarray:
    z = z + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
