"""Optional packages: the extra of aucdist that installs each, and the error where one is missing."""

import importlib
from types import ModuleType

from aucdist.errors import InputError

EXTRAS = {
    "aiohttp": "s3",
    "bokeh": "dashboard",
    "botocore": "s3",
    "deltalake": "lake",
    "duckdb": "sql",
    "openpyxl": "excel",
    "psycopg": "sql",
    "pyiceberg": "lake",
    "sqlalchemy": "sql",
    "dask_ml": "bench",
    "imblearn": "bench",
    "jinja2": "cli",
    "kubernetes": "kubernetes",
    "liblinear": "peers",
    "lightgbm": "trees",
    "markupsafe": "cli",
    "matplotlib": "plot",
    "mlflow": "mlflow",
    "onnx": "onnx",
    "prefect": "prefect",
    "prefect_aws": "prefect",
    "prometheus_client": "cli",
    "rich": "cli",
    "s3fs": "s3",
    "skglm": "bench",
    "sksurv": "peers",
    "statsmodels": "bench",
    "vowpalwabbit": "bench",
    "xgboost": "bench",
}
"""The extra of `pyproject.toml` that installs a package, by the name by which the package is imported."""


def load_optional(module: str) -> ModuleType:
    """Import a module that an extra of aucdist brings.

    Parameters
    ----------
    module : str
        Such as ``"matplotlib.figure"``.

    Returns
    -------
    module

    Raises
    ------
    InputError
        If it is not installed, or a system library that it needs is missing. The message names the extra.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InputError(explain_missing(error)) from None
    except OSError as error:
        raise InputError(f"{module} is installed, but cannot be loaded: {error}") from None


def explain_missing(error: ModuleNotFoundError) -> str:
    """Format the error for a package that is not installed: which extra brings it."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return str(error)
    return f"{package} is not installed: in the folder of the source code, run pip install '.[{EXTRAS[package]}]'"
