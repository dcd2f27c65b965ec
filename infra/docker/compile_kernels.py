"""Compiles the kernels of all estimators and solvers into the folder NUMBA_CACHE_DIR: run when the image is built.

Dense and sparse rows, in double precision, here and as workers hold them: read-only. What else is needed is compiled when it
is first used, in some seconds.
"""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits

from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS


def read_only(rows: Any) -> Any:
    """Return rows that cannot be written to; to Numba that is another type."""
    for array in [rows] if isinstance(rows, np.ndarray) else [rows.data, rows.indices, rows.indptr]:
        array.flags.writeable = False
    return rows


def main() -> None:
    """Fit every estimator by every solver, for a pass or two."""
    warnings.simplefilter("ignore")  # that it has not converged is no news
    X, digit = load_digits(return_X_y=True)
    X, y = X[:400] / 16, np.where(digit[:400] == 8, 1, -1)
    for name, estimator in ESTIMATORS.items():
        for solver in estimator.solvers:
            for rows in (X, csr_matrix(X), read_only(X.copy()), read_only(csr_matrix(X))):
                model = estimator(solver=solver)
                if "max_passes" in model.get_params():
                    model.set_params(max_passes=2)
                try:
                    model.fit(rows, y).decision_function(rows)
                except InputError as e:  # as of a solver that takes dense rows only
                    print(f"{name}, {solver}: {e}", flush=True)
                else:
                    print(f"{name}, {solver}, {type(rows).__name__}", flush=True)


if __name__ == "__main__":
    main()
