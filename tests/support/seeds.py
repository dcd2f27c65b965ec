"""Seeds of random problems: the first of them in every run of the tests, all of them in slow ones."""

from collections.abc import Iterable
from typing import Any

import pytest


def searched(seeds: Iterable[Any], quick: int) -> list[Any]:
    """Return the values of a parametrization, of which all but the first `quick` ones are marked slow."""
    return [seed if i < quick else pytest.param(seed, marks=pytest.mark.slow) for i, seed in enumerate(seeds)]
