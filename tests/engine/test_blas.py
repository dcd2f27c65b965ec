"""BLAS has one thread while a fit runs, so that no bit depends on the number of cores."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from aucdist import PairwiseHingeClassifier
from aucdist.engine.blocks import LocalBlocks
from aucdist.engine.steps import one_blas_thread
from aucdist.solvers.base import solve
from aucdist.solvers.pairs.cutting_planes import AllPairs


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS takes no number of threads")
        yield


def test_one_thread_while_the_context_lasts(two_threads):
    with one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    with pytest.raises(ValueError, match="stop"), one_blas_thread():
        raise ValueError("stop")
    assert blas_threads() == {2}


def test_the_last_of_several_threads_sets_it_back(two_threads):
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with one_blas_thread():
            inside.set()
            leave.wait(60)

    other = threading.Thread(target=stay)
    with one_blas_thread():
        other.start()
        assert inside.wait(60)
    assert blas_threads() == {1}  # the first to come has left
    leave.set()
    other.join()
    assert blas_threads() == {2}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("y", ["two classes", "three classes"])
def test_a_fit_of_long_vectors_has_the_same_bits_for_any_number_of_threads(y):
    """Vectors of more than 10 000 numbers, and products of fewer rows of them, are split up by OpenBLAS."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20_001))
    labels = np.arange(60) % (2 if y == "two classes" else 3)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(PairwiseHingeClassifier(lam=1e-3, max_passes=8, tol=1e-9).fit(X, labels))
    assert found[0].coef_.tobytes() == found[1].coef_.tobytes()
    if y == "two classes":
        assert found[0].certificate_ == found[1].certificate_
    else:
        assert found[0].certificates_ == found[1].certificates_


def test_rounds_have_one_thread(two_threads):
    rng = np.random.default_rng(1)
    blocks = LocalBlocks.of(rng.normal(size=(50, 3)), np.where(np.arange(50) % 3, -1, 1), n_blocks=2)
    seen = []

    def watched():
        for one in AllPairs().rounds(blocks, 1e-2):
            seen.append(blas_threads())
            yield one

    solve(watched(), tol=1e-3, max_passes=20)
    assert seen
    assert all(threads == {1} for threads in seen)
