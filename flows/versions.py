"""The versions of Python and of packages, which runs and measurements keep."""

import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version

PACKAGES = ("aucdist", "numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow", "dask", "distributed")
"""Those that the result of a run depends on."""


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of those packages that are installed."""
    installed = {"python": platform.python_version()}
    for package in packages:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def required() -> list[str]:
    """Return the packages that aucdist or one of its extras asks for, in the order of the alphabet."""
    return sorted({re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in requires("aucdist") or []})
