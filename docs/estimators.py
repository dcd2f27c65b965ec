"""Prints the docstrings of estimators, completed by what their base classes describe, as JSON: by the name of the class."""

import json

from aucdist.estimators import ESTIMATORS

classes = {
    kind for estimator in ESTIMATORS.values() for kind in estimator.__mro__ if kind.__module__.startswith("aucdist.")
}
print(json.dumps({f"{kind.__module__}.{kind.__qualname__}": kind.__doc__ for kind in classes if kind.__doc__}))
