"""The decorator of all kernels: compiled without the interpreter's lock, kept on disk, and compiled by one process at a time.

Compiled kernels are kept in ``<cache>/aucdist/kernels/<digest>``, because Numba alone does not notice if a function from another
file has changed. The digest covers the file of the kernel and all files of kernels that it imports, so that only kernels that may
have changed are compiled again. Set ``NUMBA_CACHE_DIR`` to choose another folder.
"""

import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core.compiler_lock import global_compiler_lock

PACKAGE = Path(__file__).parents[1]
MAX_WAIT = 60.0
"""The number of seconds for which a process waits for another process to compile a kernel. Then it compiles the kernel itself."""


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the compiled function. This is a decorator, with or without further options of `numba.njit`.

    A kernel creates no arrays, so that Numba need not count references, which takes time in loops and longer to compile. A
    kernel that creates arrays has the option ``_nrt=True``. Without it, Numba raises an error.

    Workers of one machine start a fit together and need the same kernels. The first worker compiles a kernel. The others wait,
    and load the code from the cache. No wrapper that C code could call is generated, because there is no such code.
    """
    if function is None:
        return lambda function: kernel(function, **options)
    chosen = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(kernel_folder(function.__code__.co_filename))
    try:
        compiled = njit(**{"nogil": True, "cache": True, "no_cfunc_wrapper": True, "_nrt": False} | options)(function)
    finally:
        numba.config.CACHE_DIR = chosen  # other packages in this process use this setting, so it is restored
    if not hasattr(compiled, "compile"):  # with NUMBA_DISABLE_JIT=1, `compiled` is the plain function
        return compiled
    compile_or_load, name = compiled.compile, f"{function.__module__}.{function.__qualname__}.lock"

    def compile_alone(signature: Any) -> Any:
        """Compile the kernel, or load what another process has compiled in the meantime."""
        folder = compiled.stats.cache_path
        if folder is None or (isinstance(signature, tuple) and signature in compiled.overloads):
            return compile_or_load(signature)
        # The lock of threads comes first. Otherwise, one thread could hold Numba's lock and another the file's lock, and both
        # would wait.
        with global_compiler_lock, _locked(Path(folder) / name):
            return compile_or_load(signature)

    compiled.compile = compile_alone
    return compiled


def kernel_folder(file: str) -> Path:
    """Return the folder for the compiled kernels of a file: the user's choice, or one to which only this user can write."""
    return Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else _own_folder(file)


@cache
def _own_folder(file: str) -> Path:
    name = f"{numba.__version__}-{hashlib.sha256(_sources(Path(file))).hexdigest()[:16]}"
    with suppress(OSError, RuntimeError):  # the home folder may be read-only or missing, as in a container
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aucdist" / "kernels" / name
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    # Cached code is executed, so no other user may own the folder.
    folder = Path(tempfile.gettempdir()) / f"aucdist-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        folder = Path(tempfile.mkdtemp(prefix="aucdist-kernels-"))
    return folder / name


@cache
def _sources(file: Path) -> bytes:
    """Return the source of a file of kernels, followed by the sources of all files of aucdist that it imports."""
    source = file.read_bytes()
    imported = sorted(set(re.findall(rb"^from aucdist\.([\w.]+) import", source, re.MULTILINE)))
    return source + b"".join(_sources(PACKAGE / f"{name.decode().replace('.', '/')}.py") for name in imported)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file. Hold no lock if the folder is not writable or its file system has no locks.

    A kernel calls other kernels but is never called by them, so processes always wait for each other in the same order. The
    lock ends with its process.
    """
    try:
        file = path.open("a")
    except OSError:
        yield
        return
    with file:
        deadline = time.monotonic() + MAX_WAIT
        while not _try_lock(file) and time.monotonic() < deadline:
            time.sleep(0.02)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _try_lock(file: Any) -> bool:
    """Return False while another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        return True
    return True
