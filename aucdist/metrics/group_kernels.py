"""Compiled loops over sorted scores for metrics within groups, and for merging the counts of two parts of a data set.

They are in a module of their own because Numba takes a second to load.
"""

from aucdist.kernels.compiling import kernel


@kernel
def pairs_won(starts, score, rank, weight, tree, sums):
    """Compute for each group the weight of all pairs, and of the pairs in the right order, where ties count one half.

    A Fenwick tree (Fenwick, Software: Practice and Experience 24, 1994) holds the weight of each grade among the rows so far.
    So n rows with any number of grades take O(n log n) steps, and rounding errors of one group do not affect the sums of
    another.

    Parameters
    ----------
    starts : ndarray of shape (n_groups + 1,), int64
        The position of the first row of each group.
    score : ndarray of shape (n_rows,), float64
        Scores, which ascend within each group.
    rank : ndarray of shape (n_rows,), int64
        The rank of each row's grade among those of its group, counted from 1.
    weight : ndarray of shape (n_rows,), float64
        The weights of the rows.
    tree : ndarray of shape (n_ranks + 1,), float64
        Workspace, for as many ranks as any group has.
    sums : ndarray of shape (2, n_groups), float64
        Output: the weights of the pairs in the right order, and of all pairs.
    """
    for g in range(starts.shape[0] - 1):
        size = 0
        for k in range(starts[g], starts[g + 1]):
            size = max(size, rank[k])
        for r in range(size + 1):
            tree[r] = 0.0
        total = 0.0
        first = starts[g]
        while first < starts[g + 1]:
            stop = first + 1
            while stop < starts[g + 1] and score[stop] == score[first]:
                stop += 1
            below = 0.0
            for k in range(first, stop):
                below += weight[k] * _weight_below(tree, rank[k])
            for k in range(first, stop):
                _add(tree, size, rank[k], weight[k])
            after = 0.0
            for k in range(first, stop):
                after += weight[k] * _weight_below(tree, rank[k])
            total += 0.5 * (below + after)
            first = stop
        sums[0, g] = total
        total = 0.0
        for k in range(starts[g], starts[g + 1]):
            total += weight[k] * _weight_below(tree, rank[k])
        sums[1, g] = total


@kernel
def _weight_below(tree, rank):
    total = 0.0
    r = rank - 1
    while r > 0:
        total += tree[r]
        r -= r & -r
    return total


@kernel
def _add(tree, size, rank, weight):
    r = rank
    while r <= size:
        tree[r] += weight
        r += r & -r
