"""Fit every estimator with its defaults to data sets of the catalogue, and write a CSV of how the fits ended.

`make defaults` prints one row for each data set and estimator: its status, the relative gap, the passes and the warnings. Columns
are standardised, those of sparse rows divided by their largest absolute value, as the documentation advises. Where a data set has
more than two classes, the rarest one is ranked against the others.
"""

import argparse
import csv
import sys
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from aucdist.data.shards.reading import read
from aucdist.data.sources import catalog, find_source
from aucdist.errors import InputError
from aucdist.estimators import ESTIMATORS

NAMES = ["digits", "letter-recognition", "a9a", "news20"]
COLUMNS = ["data", "rows", "features", "positives", "estimator", "status", "relative gap", "passes", "warnings"]


def fitted(estimator, X, y):
    """Return the model and the names of the warnings of its fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator().fit(X, y)
    return model, " ".join(sorted({warning.category.__name__ for warning in caught}))


def main(argv=None):
    """Write the table, and return the number of fits that neither converged nor ended stationary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", help="data sets of the catalogue; by default digits, a9a, news20 and KEEL's"
    )
    parser.add_argument("--output", type=argparse.FileType("w"), default="-")
    options = parser.parse_args(argv)
    out, n_short = csv.writer(options.output, lineterminator="\n"), 0
    out.writerow(COLUMNS)
    for name in options.names or [*NAMES, *(name for name, source in catalog().items() if source.format == "keel")]:
        try:
            block = read(find_source(name)).block
        except InputError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        X = (MaxAbsScaler() if sp.issparse(block.X) else StandardScaler()).fit_transform(block.X)
        for estimator in ESTIMATORS.values():
            model, score = fitted(estimator, X, block.y)
            c = model.certificate_
            n_short += c.status not in ("converged", "stationary")
            known = [name, *block.X.shape, int(np.count_nonzero(block.y > 0)), estimator.__name__]
            out.writerow([*known, c.status, f"{c.relative_gap:.2e}", model.n_passes_, score])
            options.output.flush()
    return n_short


if __name__ == "__main__":
    main()
    sys.exit(0)
