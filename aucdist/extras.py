"""Import optional packages, and say which extra of aucdist installs a missing one."""

import importlib
from types import ModuleType

from aucdist.errors import InputError

PACKAGES = {
    "bench": "dask_ml imblearn skglm statsmodels vowpalwabbit xgboost",
    "cli": "aiohttp jinja2 markupsafe prometheus_client rich",
    "dashboard": "bokeh",
    "excel": "openpyxl",
    "kubernetes": "kubernetes",
    "lake": "deltalake pyiceberg",
    "mlflow": "mlflow",
    "onnx": "onnx",
    "peers": "liblinear sksurv",
    "plot": "matplotlib",
    "prefect": "prefect prefect_aws",
    "s3": "botocore s3fs",
    "sql": "duckdb psycopg sqlalchemy",
    "trees": "lightgbm",
}
"""The packages that each extra of `pyproject.toml` installs, by the names by which they are imported."""
EXTRAS = {package: extra for extra, packages in PACKAGES.items() for package in packages.split()}
"""The extra that installs a package."""


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
    """Return the message for a package that is not installed. It names the extra of aucdist that installs it."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return str(error)
    return f"{package} is not installed: in the folder of the source code, run pip install '.[{EXTRAS[package]}]'"
