"""Pieces of text out of bytes."""

from numba import njit

from aucdist.kernels.decimals import UNCOUNTED


@njit(**UNCOUNTED)
def gather(data, spans, offsets, out):
    """Put pieces of the data one behind the other.

    Parameters
    ----------
    data : ndarray of uint8
    spans : ndarray of shape (n, 2), int64
        Where each piece starts and stops.
    offsets : ndarray of shape (n + 1,), int64
        Where each piece starts in `out`, and the end of the last.
    out : ndarray of uint8
        Written.
    """
    for r in range(spans.shape[0]):
        at = offsets[r]
        for i in range(spans[r, 0], spans[r, 1]):
            out[at] = data[i]
            at += 1
