"""Numba kernels: arrays in, arrays out; no Python objects, no allocation in the loop, float64 sums.

Compiled kernels are cached in ``<cache>/aucdist/kernels/<digest of these files>``, because Numba by itself does not notice when a
function called from another file has changed. Set ``NUMBA_CACHE_DIR`` to choose another folder.
"""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import numba


def _cache_folder() -> Path:
    sources = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        sources.update(file.read_bytes())
    name = f"{numba.__version__}-{sources.hexdigest()[:16]}"
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    folder = Path(home) / "aucdist" / "kernels" / name
    with suppress(OSError):  # the home folder is read-only, as in a container
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    # Compiled code is executed, so no other user may own the folder.
    own = Path(tempfile.gettempdir()) / f"aucdist-kernels-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    if own.stat().st_uid != os.getuid() or own.stat().st_mode & 0o022:
        own = Path(tempfile.mkdtemp(prefix="aucdist-kernels-"))
    return own / name


if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = str(_cache_folder())
