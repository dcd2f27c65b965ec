"""Real data sets that come with scikit-learn: no file and no network needed."""

import hashlib

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from aucdist.data.formats.tables import Table
from aucdist.errors import InputError, unknown

EMBEDDED = {"breast_cancer": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine}


def load_embedded(name: str | list[str]) -> tuple[Table, str]:
    """Return a bundled data set and the checksum of its numbers.

    Raises InputError if there is none of that name.
    """
    if not isinstance(name, str):
        raise InputError("format 'embedded' takes the name of one data set")
    if name not in EMBEDDED:
        raise unknown("embedded data set", name, EMBEDDED)
    bunch = EMBEDDED[name]()
    X = np.ascontiguousarray(bunch.data, dtype=np.float64)
    codes = np.asarray(bunch.target, dtype=np.int64)
    names = tuple(str(f) for f in bunch.feature_names)
    classes = pd.Categorical.from_codes(codes, categories=pd.Index([str(c) for c in bunch.target_names], dtype=object))
    table = Table(X, {"target": classes}, "target", names, {})
    return table, hashlib.sha256(X.tobytes() + codes.tobytes()).hexdigest()
