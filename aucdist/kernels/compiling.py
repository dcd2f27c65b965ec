"""The decorator of all kernels: compiled without the interpreter's lock, kept on disk, and compiled by one process at a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # Windows: processes that start together compile the same kernels
    fcntl = None

LONGEST_WAIT = 60.0
"""Seconds after which a process no longer waits for another one to compile a kernel, and compiles it as well."""


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the compiled function; as a decorator, with or without further options of `numba.njit`.

    A kernel makes no arrays, so that no references are counted, which would take time in a loop and longer to compile. One that
    makes arrays says ``_nrt=True``; else Numba refuses to compile it.

    Workers of one machine start a fit together and need the same kernels. The first one compiles; the others wait, and load the
    code from the cache, so that a first fit does not cost each of them the same seconds. No function that a C program could
    call is made, since nothing would call it.
    """
    if function is None:
        return lambda function: kernel(function, **options)
    compiled = njit(**{"nogil": True, "cache": True, "no_cfunc_wrapper": True, "_nrt": False} | options)(function)
    if hasattr(compiled, "compile"):  # with NUMBA_DISABLE_JIT=1 it is the function itself
        compiled.compile = _one_at_a_time(compiled)
    return compiled


def _one_at_a_time(compiled: Any) -> Callable[[Any], Any]:
    compile_or_load, function = compiled.compile, compiled.py_func
    name = f"{function.__module__}.{function.__qualname__}.lock"

    def compile_alone(signature: Any) -> Any:
        """Compile the kernel, or load what another process has compiled in the meantime."""
        folder = compiled.stats.cache_path
        if folder is None or (isinstance(signature, tuple) and signature in compiled.overloads):
            return compile_or_load(signature)
        # Threads first: of two that waited for each other, one would hold Numba's lock and the other one the file's.
        with global_compiler_lock, _locked(Path(folder) / name):
            return compile_or_load(signature)

    return compile_alone


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, or none where the folder is not writable or knows no locks.

    A kernel calls kernels and is never called by them, so that processes which wait for each other do so in one order.
    The lock ends with its process.
    """
    if fcntl is None:
        yield
        return
    try:
        file = path.open("a")
    except OSError:
        yield
        return
    with file:
        deadline = time.monotonic() + LONGEST_WAIT
        while not _lock(file) and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _lock(file: Any) -> bool:
    """Return False while another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
