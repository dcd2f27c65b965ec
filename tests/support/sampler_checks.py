"""imbalanced-learn's checks of samplers, as pytest wants them."""

from typing import Any

import pytest
from imblearn.utils.estimator_checks import parametrize_with_checks


def sampler_checks(*samplers: Any) -> pytest.MarkDecorator:
    """Return the mark that runs imbalanced-learn's checks; its own is a generator, which pytest no longer takes."""
    mark = parametrize_with_checks(list(samplers))
    names, checks = mark.args
    return pytest.mark.parametrize(names, list(checks), **mark.kwargs)
