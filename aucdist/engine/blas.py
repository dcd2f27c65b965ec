"""One BLAS thread while a fit runs.

BLAS splits long products by its threads and adds up the parts in another order, so the bits of a fit would depend on the number
of cores. Its threads also wait for each other by spinning: where fits run side by side, or other programs compute, that costs
many times the product. So `n_jobs` and workers alone say how many threads a fit has.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController


class _Limit:
    """Counts the fits under way: BLAS has one number of threads for the process, and the last fit to end sets it back."""

    def __init__(self) -> None:
        self._fits, self._lock = 0, threading.Lock()
        self._libraries: list[Any] | None = None
        self._before: list[int] = []

    def begin(self) -> None:
        """Let BLAS have one thread, unless a fit has seen to it."""
        with self._lock:
            self._fits += 1
            if self._fits > 1:
                return
            if self._libraries is None:  # looking through the libraries of the process takes 10 ms
                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._before = [library.num_threads for library in self._libraries]
            self._set([1] * len(self._before))

    def end(self) -> None:
        """Let BLAS have the threads it had, if this was the last fit."""
        with self._lock:
            self._fits -= 1
            if self._fits == 0:
                self._set(self._before)

    def _set(self, threads: list[int]) -> None:
        for library, n in zip(self._libraries or (), threads, strict=True):
            # From 3.8 on `set_num_threads` does nothing in any thread but the first that called it, so that threads do not set
            # back what others have set. The count of the fits is for that.
            getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS have one thread in this process as long as the context lasts; several threads may be in it at the same time."""
    _limit.begin()
    try:
        yield
    finally:
        _limit.end()
