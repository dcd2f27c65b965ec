"""The versions of Python and of packages, which runs and measurements keep."""

import hashlib
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("aucdist", "numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow", "dask", "distributed")
"""The packages that the result of a run depends on."""


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    installed = {"python": platform.python_version()}
    for package in packages:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def digests() -> dict[str, str]:
    """Return the SHA-256 of the code of aucdist, and of the names and versions of all installed packages.

    These are read off the names of their folders: reading what is in them takes half a second.
    """
    root, code = Path(__file__).resolve().parents[1], hashlib.sha256()
    for file in sorted(file for package in ("aucdist", "flows") for file in (root / package).rglob("*.py")):
        code.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    packages = sorted({info.stem for folder in sys.path for info in Path(folder).glob("*.dist-info")})
    return {"code": code.hexdigest(), "packages": hashlib.sha256("\n".join(packages).encode()).hexdigest()}
