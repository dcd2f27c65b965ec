"""Copy pieces of text out of bytes."""

from aucdist.kernels.compiling import kernel


@kernel
def gather(data, spans, offsets, out):
    """Copy pieces of the data into one contiguous array.

    `data`: ndarray of uint8.
    `spans`, of shape (n, 2), int64: start and stop of each piece.
    `offsets`, of shape (n + 1,), int64: start of each piece in `out`, and the end of the last one.
    `out`, ndarray of uint8: written: the pieces.
    """
    for r in range(spans.shape[0]):
        at = offsets[r]
        for i in range(spans[r, 0], spans[r, 1]):
            out[at] = data[i]
            at += 1
